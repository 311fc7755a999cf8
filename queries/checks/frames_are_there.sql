-- Every stack frame that an instruction or a frame refers to is stored.
SELECT
    instructions.module_id,
    instructions.instruction || ': stack frame ' || instructions.stack_frame_id
    || ' is not there' AS breach
FROM instructions
LEFT JOIN stack_frames
    ON stack_frames.module_id = instructions.module_id
        AND stack_frames.stack_frame_id = instructions.stack_frame_id
WHERE instructions.stack_frame_id IS NOT NULL
    AND instructions.computation IS NOT NULL
    AND stack_frames.stack_frame_id IS NULL
UNION ALL
SELECT
    called.module_id,
    'stack frame ' || called.stack_frame_id || ' was called by ' || called.parent_frame_id
    || ', which is not there'
FROM stack_frames AS called
LEFT JOIN stack_frames AS caller
    ON caller.module_id = called.module_id AND caller.stack_frame_id = called.parent_frame_id
WHERE called.parent_frame_id IS NOT NULL AND caller.stack_frame_id IS NULL
UNION ALL
SELECT
    module_id,
    'stack frame ' || stack_frame_id || ' has no file or no function'
FROM stack_frames
WHERE file IS NULL OR function IS NULL
