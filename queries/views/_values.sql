-- Every value with its life and the instruction that defines it.
--
-- A row per value.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- value_id: the value, see `values`
-- allocation_index: the allocation that the value is in, see `allocations`
-- size_bytes: what the value takes
-- logical_bytes: elements x element size
-- padding_bytes: size_bytes - logical_bytes
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- start_time: first time the value is live
-- end_time: last time the value is live; the schedule's length if the value lives out
-- instruction: the instruction that defines the value
-- opcode: its opcode
-- op_name: the framework's name of the operation
-- source_file: the Python file of the line that made the instruction
-- source_line: that line
SELECT
    _lives.module_id,
    _lives.memory_space,
    _lives.value_id,
    _lives.allocation_index,
    _lives.size_bytes,
    _lives.logical_bytes,
    _lives.padding_bytes,
    _lives.shape_index,
    _lives.shape,
    _lives.element_type,
    _lives.start_time,
    _lives.end_time,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line
FROM _lives
INNER JOIN instructions
    ON instructions.module_id = _lives.module_id
        AND instructions.instruction_id = _lives.instruction_id
