-- Every stack frame has a file and a function.
SELECT
    module_id,
    'stack frame ' || stack_frame_id || ' has no file or no function' AS breach
FROM stack_frames
WHERE file IS NULL OR function IS NULL
