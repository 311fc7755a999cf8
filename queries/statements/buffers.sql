-- The rows of `memhouse buffers MODULE`: module $1, memory space $2, at the time $3 or else the
-- peak, the $4 largest. As `peak_buffers`, which answers for the peak alone.
WITH there AS (
    SELECT
        _buffers.*,
        GREATEST(
            offset_bytes + size_bytes - GREATEST(
                offset_bytes,
                COALESCE(
                    MAX(offset_bytes + size_bytes) OVER (
                        PARTITION BY allocation_index
                        ORDER BY offset_bytes, size_bytes DESC, value_id
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ),
                    0
                )
            ),
            0
        ) AS counted_bytes
    FROM _buffers
    INNER JOIN module_memory
        ON module_memory.module_id = _buffers.module_id
        AND module_memory.memory_space = _buffers.memory_space
    WHERE _buffers.module_id = $1
        AND _buffers.memory_space = $2
        AND _buffers.start_time <= COALESCE($3, module_memory.peak_time)
        AND _buffers.end_time >= COALESCE($3, module_memory.peak_time)
)
SELECT
    there.counted_bytes,
    CAST(there.counted_bytes AS DOUBLE) / NULLIF(SUM(there.counted_bytes) OVER (), 0) AS share,
    there.category,
    instructions.instruction
        || CASE WHEN there.shape_index = '{}' THEN '' ELSE there.shape_index END AS value,
    REGEXP_EXTRACT(instructions.source_file, '[^/]*$') || ':' || instructions.source_line AS source,
    instructions.op_name,
    REGEXP_REPLACE(there.shape, '\{.*', '') AS shape,
    LEAST(there.padding_bytes, there.counted_bytes) AS padding_bytes
FROM there
LEFT JOIN instructions
    ON instructions.module_id = there.module_id
    AND instructions.instruction_id = there.instruction_id
ORDER BY there.counted_bytes DESC, there.size_bytes DESC, there.allocation_index, there.value_id
LIMIT $4
