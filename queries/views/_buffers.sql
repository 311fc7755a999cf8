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
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- instruction: the instruction that defines the value
-- opcode: its opcode
-- op_name: the framework's name of the operation, or of the argument
-- source_file: the Python file of the line that made the instruction
-- source_line: that line
-- stack_frame_id: the instruction's innermost Python frame, see `stack_frames`
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
    stands.padding_bytes,
    0 AS offset_bytes,
    0 AS start_time,
    modules.schedule_length AS end_time,
    stands.value_id,
    stands.shape_index,
    stands.shape,
    stands.instruction,
    stands.opcode,
    stands.op_name,
    stands.source_file,
    stands.source_line,
    stands.stack_frame_id
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
INNER JOIN _standing
    ON _standing.module_id = allocations.module_id
    AND _standing.allocation_index = allocations.allocation_index
LEFT JOIN _values AS stands
    ON stands.module_id = _standing.module_id
    AND stands.value_id = _standing.value_id
UNION ALL
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    'temp' AS category,
    _values.size_bytes,
    _values.padding_bytes,
    _values.offset_bytes,
    _values.start_time,
    _values.end_time,
    _values.value_id,
    _values.shape_index,
    _values.shape,
    _values.instruction,
    _values.opcode,
    _values.op_name,
    _values.source_file,
    _values.source_line,
    _values.stack_frame_id
FROM allocations
INNER JOIN _values
    ON _values.module_id = allocations.module_id
    AND _values.allocation_index = allocations.allocation_index
WHERE allocations.is_temp AND _values.start_time IS NOT NULL
