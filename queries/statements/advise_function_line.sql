-- The first line of the compiled function of module $1: where most of its frames are.
SELECT
    stack_frames.file,
    MIN(stack_frames.line) AS line
FROM stack_frames
INNER JOIN modules ON modules.module_id = stack_frames.module_id
WHERE
    stack_frames.module_id = $1
    AND 'jit_' || SPLIT_PART(stack_frames.function, '.', -1) = modules.module_name
GROUP BY stack_frames.file
ORDER BY COUNT(*) DESC, stack_frames.file
