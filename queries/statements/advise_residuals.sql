-- What module $1 saves for its backward pass in memory space $2, the largest first.
SELECT
    saved.residual_id,
    saved.value_id,
    saved.layers,
    saved.size_bytes,
    saved.element_type,
    saved.shape,
    saved.scope,
    saved.operation,
    saved.opcode,
    saved.source_file || ':' || saved.source_line AS source,
    residuals.made_instruction_id,
    residuals.read_instruction_id,
    saved.start_time,
    saved.end_time,
    saved.idle_start_time,
    saved.idle_end_time,
    saved.peak_idle_time,
    saved.is_live_at_peak
FROM saved_for_backward AS saved
INNER JOIN residuals
    ON residuals.module_id = saved.module_id
        AND residuals.residual_id = saved.residual_id
WHERE saved.module_id = $1 AND saved.memory_space = $2
ORDER BY saved.residual_id
