-- What fills memory space $2 of module $1 at its peak, by Python stack: the stack's frames, the
-- outermost first, empty where the dump has none; the user's line and the library's; the module's
-- path with its fold; the operation. The bytes add up to the peak.
WITH RECURSIVE stacks AS (
    SELECT
        stack_frame_id,
        [
            {
                'name': "function",
                'file': file,
                'line': line
            }
        ] AS frames
    FROM stack_frames
    WHERE module_id = $1 AND parent_frame_id IS NULL
    UNION ALL
    SELECT
        inner_frames.stack_frame_id,
        LIST_APPEND(
            stacks.frames,
            {
                'name': inner_frames."function",
                'file': inner_frames.file,
                'line': inner_frames.line
            }
        ) AS frames
    FROM stacks
    INNER JOIN stack_frames AS inner_frames
        ON inner_frames.parent_frame_id = stacks.stack_frame_id
    WHERE inner_frames.module_id = $1
)

SELECT
    summed.* EXCLUDE (stack_frame_id),
    COALESCE(stacks.frames, []) AS frames
FROM (
    SELECT
        buffers.kind,
        buffers.role,
        CASE WHEN buffers.kind LIKE '%arguments' THEN buffers.op_name END AS argument,
        buffers.source_file,
        buffers.source_line,
        buffers.library_file,
        buffers.library_line,
        COALESCE(buffers.module_path, '') AS module_path,
        COALESCE(buffers.fold, '') AS fold,
        COALESCE(buffers.operation, buffers.opcode, '(not known)') AS operation,
        -- The innermost frame: that of `buffers` is the user's.
        instructions.stack_frame_id,
        CAST(SUM(buffers.counted_at_peak_bytes) AS BIGINT) AS counted_bytes
    FROM internal.buffers AS buffers
    LEFT JOIN "values"
        ON "values".module_id = buffers.module_id
            AND "values".value_id = buffers.value_id
    LEFT JOIN instructions
        ON instructions.module_id = buffers.module_id
            AND instructions.instruction_id
            = COALESCE("values".origin_instruction_id, "values".instruction_id)
    WHERE buffers.module_id = $1
        AND buffers.memory_space = $2
        AND buffers.is_live_at_peak
        AND buffers.counted_at_peak_bytes > 0
    GROUP BY ALL
) AS summed
LEFT JOIN stacks ON stacks.stack_frame_id = summed.stack_frame_id
ORDER BY summed.counted_bytes DESC, summed.module_path, summed.operation, summed.argument
