-- What packing wastes: what each temp allocation takes above what must be live.
--
-- A row per temp allocation. The bound is the most that is live at one time, by XLA's own live
-- ranges and sharing: no packing can need less. Values that are live together must not overlap,
-- so packing them leaves gaps. Estimated modules have no packing and no row.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- size_bytes: its size
-- live_bound_bytes: the most of it that is live at one time
-- packing_bytes: size_bytes - live_bound_bytes
-- wasted: packing_bytes over size_bytes
-- peak_time: the first time at which it is fullest
-- instruction: the instruction at peak_time
-- values_in_it: how many values it holds over time
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    allocations.size_bytes,
    allocations.peak_bytes AS live_bound_bytes,
    allocations.size_bytes - allocations.peak_bytes AS packing_bytes,
    CAST(allocations.size_bytes - allocations.peak_bytes AS DOUBLE)
    / NULLIF(allocations.size_bytes, 0) AS wasted,
    allocations.peak_time,
    instructions.instruction,
    held.values_in_it
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
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
WHERE allocations.is_temp
    AND allocations.peak_bytes IS NOT NULL
    AND modules.origin <> 'estimated'
