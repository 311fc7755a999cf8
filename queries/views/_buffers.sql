-- Everything that takes memory of its own at some time.
--
-- A row per allocation that is occupied throughout, shown by the value that stands for it,
-- and a row per value in a temp allocation.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- allocation_index: the allocation, see `allocations`
-- category: argument, output (that is not an argument), constant, temp or other
-- size_bytes: what the allocation or the value takes
-- padding_bytes: what tiling adds to the value's logical size
-- offset_bytes: where in the allocation the buffer starts
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there
-- value_id: the value, see `values`
-- instruction_id: the instruction that defines the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
SELECT
    module_id,
    memory_space,
    allocation_index,
    CASE
        WHEN is_parameter THEN 'argument'
        WHEN maybe_live_out THEN 'output'
        WHEN is_constant THEN 'constant'
        ELSE 'other'
    END AS category,
    size_bytes,
    padding_bytes,
    0 AS offset_bytes,
    0 AS start_time,
    schedule_length AS end_time,
    value_id,
    instruction_id,
    shape_index,
    shape
FROM _standing
WHERE choice = 'largest'
UNION ALL
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    'temp' AS category,
    _lives.size_bytes,
    _lives.padding_bytes,
    _lives.offset_bytes,
    _lives.start_time,
    _lives.end_time,
    _lives.value_id,
    _lives.instruction_id,
    _lives.shape_index,
    _lives.shape
FROM allocations
INNER JOIN _lives
    ON _lives.module_id = allocations.module_id
        AND _lives.allocation_index = allocations.allocation_index
WHERE allocations.is_temp AND _lives.start_time IS NOT NULL
