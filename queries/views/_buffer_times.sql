-- When each buffer is there, and nothing else: so that those of a time are found quickly.
--
-- A row per allocation that is occupied throughout, and per value with a live range, also of
-- values outside of temp allocations: look them up in `values`.
--
-- module_id: the module, see `modules`
-- memory_space: the allocation's memory space; null for a value
-- allocation_index: the allocation, see `allocations`; null for a value
-- category: argument, output (that is not an argument), constant, other, or temp for a value
-- size_bytes: what the allocation takes; null for a value
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there
-- value_id: the value, or the value that the allocation is for, see `values`
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    CASE
        WHEN allocations.is_parameter THEN 'argument'
        WHEN allocations.maybe_live_out THEN 'output'
        WHEN allocations.is_constant THEN 'constant'
        ELSE 'other'
    END AS category,
    allocations.size_bytes,
    0 AS start_time,
    modules.schedule_length AS end_time,
    allocations.value_id
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
UNION ALL
SELECT
    module_id,
    NULL,
    NULL,
    'temp',
    NULL,
    start_time,
    end_time,
    value_id
FROM live_ranges
