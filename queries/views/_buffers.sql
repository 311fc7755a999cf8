-- Everything that takes memory of its own at some time: the rows `peak_buffers` picks from.
--
-- A row per allocation that is occupied throughout, shown by its largest value, and a row per
-- value in a temp allocation while it lives.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- category: argument, output (that is no argument), constant, temp or other
-- size_bytes: what the allocation or the value takes
-- padding_bytes: what tiling adds to the value's logical size
-- offset_bytes: where in the allocation it starts
-- start_time: first time it is there
-- end_time: last time it is there
-- value_id: the value, see `values`
-- instruction_id: the instruction that defines it
-- shape_index: which part of its shape, `{}` for all of it
-- shape: its shape with layout
SELECT
    module_id,
    memory_space,
    allocation_index,
    category,
    size_bytes,
    padding_bytes,
    0 AS offset_bytes,
    0 AS start_time,
    schedule_length AS end_time,
    value_id,
    instruction_id,
    shape_index,
    value_shape AS shape
FROM (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        allocations.size_bytes,
        CASE
            WHEN allocations.is_parameter THEN 'argument'
            WHEN allocations.maybe_live_out THEN 'output'
            WHEN allocations.is_constant THEN 'constant'
            ELSE 'other'
        END AS category,
        modules.schedule_length,
        "values".size_bytes - "values".logical_bytes AS padding_bytes,
        "values".value_id,
        "values".instruction_id,
        "values".shape_index,
        "values".shape AS value_shape,
        ROW_NUMBER() OVER (
            PARTITION BY allocations.module_id, allocations.allocation_index
            ORDER BY "values".size_bytes DESC, "values".value_id
        ) AS size_rank
    FROM allocations
    INNER JOIN modules ON modules.module_id = allocations.module_id
    LEFT JOIN "values"
        ON "values".module_id = allocations.module_id
        AND "values".allocation_index = allocations.allocation_index
    WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
) AS throughout
WHERE size_rank = 1
UNION ALL
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    'temp' AS category,
    "values".size_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    "values".offset_bytes,
    live_ranges.start_time,
    live_ranges.end_time,
    "values".value_id,
    "values".instruction_id,
    "values".shape_index,
    "values".shape
FROM allocations
INNER JOIN "values"
    ON "values".module_id = allocations.module_id
    AND "values".allocation_index = allocations.allocation_index
INNER JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
    AND live_ranges.value_id = "values".value_id
WHERE allocations.is_temp
