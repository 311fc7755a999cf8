-- The temp buffers of module $1 in memory space $2 that nothing touches across the peak, those
-- that take the most bytes for the longest first.
SELECT
    alias_sets.alias_set,
    alias_sets.value_id,
    buffers.size_bytes,
    buffers.residual_id IS NOT NULL AS is_saved_for_backward,
    held.operation,
    held.source_file || ':' || held.source_line AS source,
    alias_sets.start_time,
    alias_sets.end_time,
    alias_sets.idle_start_time,
    alias_sets.idle_end_time
FROM alias_sets
INNER JOIN "values" AS buffers
    ON buffers.module_id = alias_sets.module_id
        AND buffers.value_id = alias_sets.value_id
LEFT JOIN _operations AS held
    ON held.module_id = buffers.module_id
        AND held.instruction_id = COALESCE(buffers.origin_instruction_id, buffers.instruction_id)
INNER JOIN module_memory
    ON module_memory.module_id = alias_sets.module_id
        AND module_memory.memory_space = buffers.memory_space
WHERE
    alias_sets.module_id = $1
    AND buffers.memory_space = $2
    AND alias_sets.peak_idle_time > 0
    AND module_memory.peak_time > alias_sets.idle_start_time
    AND module_memory.peak_time < alias_sets.idle_end_time
ORDER BY
    buffers.size_bytes * alias_sets.peak_idle_time DESC,
    alias_sets.value_id
