-- Copies within memory space $2 of module $1 that no line of the program asks for, and that are
-- counted at the peak, the largest first. Both sides lie in the space.
SELECT
    copied.value_id,
    made.instruction,
    computations.is_entry,
    copied.size_bytes AS counted_bytes,
    CASE
        WHEN held.source_file IS NOT NULL THEN held.source_file || ':' || held.source_line
    END AS source
FROM module_memory
INNER JOIN "values" AS copied
    ON copied.module_id = module_memory.module_id
        AND copied.memory_space = module_memory.memory_space
INNER JOIN live_ranges
    ON live_ranges.module_id = copied.module_id
        AND live_ranges.value_id = copied.value_id
INNER JOIN allocations
    ON allocations.module_id = copied.module_id
        AND allocations.allocation_index = copied.allocation_index
INNER JOIN instructions AS made
    ON made.module_id = copied.module_id
        AND made.instruction_id = copied.instruction_id
INNER JOIN computations
    ON computations.module_id = made.module_id
        AND computations.computation = made.computation
LEFT JOIN instructions AS held
    ON held.module_id = copied.module_id
        AND held.instruction_id = copied.origin_instruction_id
WHERE
    module_memory.module_id = $1
    AND module_memory.memory_space = $2
    AND made.opcode IN ('copy', 'copy-start')
    AND made.op_name IS NULL
    AND allocations.is_temp
    AND module_memory.peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time
    AND EXISTS (
        SELECT 1
        FROM uses
        INNER JOIN "values" AS source
            ON source.module_id = uses.module_id
                AND source.value_id = uses.value_id
        WHERE
            uses.module_id = made.module_id
            AND uses.instruction_id = made.instruction_id
            AND source.memory_space = $2
    )
ORDER BY copied.size_bytes DESC, copied.value_id
