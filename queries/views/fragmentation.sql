-- What packing wastes: how much of each temp allocation is never occupied at once.
--
-- A row per temp allocation. Values that are live together must not overlap, so packing them
-- leaves gaps. The part of the allocation that is free even at its fullest time is wasted.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- size_bytes: its size
-- most_occupied_bytes: the most of it that is occupied at one time
-- wasted_bytes: size_bytes - most_occupied_bytes
-- wasted: wasted_bytes over size_bytes
-- peak_time: the first time at which it is fullest
-- instruction: the instruction at peak_time
-- values_in_it: how many values it holds over time
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    allocations.size_bytes,
    allocations.peak_bytes AS most_occupied_bytes,
    allocations.size_bytes - allocations.peak_bytes AS wasted_bytes,
    CAST(allocations.size_bytes - allocations.peak_bytes AS DOUBLE)
    / NULLIF(allocations.size_bytes, 0) AS wasted,
    allocations.peak_time,
    instructions.instruction,
    held.values_in_it
FROM allocations
INNER JOIN (
    SELECT module_id, allocation_index, COUNT(*) AS values_in_it
    FROM "values"
    GROUP BY module_id, allocation_index
) AS held
    ON held.module_id = allocations.module_id
        AND held.allocation_index = allocations.allocation_index
LEFT JOIN instructions
    ON instructions.module_id = allocations.module_id
        AND instructions.schedule_time = allocations.peak_time
WHERE allocations.is_temp AND allocations.peak_bytes IS NOT NULL
