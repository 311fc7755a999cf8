-- What module $1 saves for its backward pass in memory space $2, the largest first.
SELECT
    saved.residual_id,
    saved.value_id,
    saved.layers,
    saved.size_bytes,
    saved.shape,
    saved.operation,
    saved.opcode,
    saved.source_file || ':' || saved.source_line AS source,
    saved.start_time,
    saved.end_time,
    saved.idle_end_time
FROM saved_for_backward AS saved
WHERE saved.module_id = $1 AND saved.memory_space = $2
ORDER BY saved.residual_id
