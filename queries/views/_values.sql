-- Every value with the instruction that defines it, and its life.
--
-- A row per value. A thread-local value has no life, and neither do some constants.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- value_id: the value, see `values`
-- allocation_index: the allocation that the value is in, see `allocations`
-- offset_bytes: where in the allocation the value starts
-- size_bytes: what the value takes
-- logical_bytes: elements x element size
-- padding_bytes: size_bytes - logical_bytes
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- start_time: first time the value is live
-- end_time: last time the value is live; the schedule's length if the value lives out
-- instruction_id: the instruction that defines the value
-- instruction: its name
-- opcode: its opcode
-- op_name: the framework's name of the operation
-- source_file: the Python file of the line that made the instruction
-- source_line: that line
-- stack_frame_id: the instruction's innermost Python frame, see `stack_frames`
SELECT
    "values".module_id,
    "values".memory_space,
    "values".value_id,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".logical_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    "values".shape_index,
    "values".shape,
    "values".element_type,
    live_ranges.start_time,
    live_ranges.end_time,
    "values".instruction_id,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    instructions.stack_frame_id
FROM "values"
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
    AND instructions.instruction_id = "values".instruction_id
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
    AND live_ranges.value_id = "values".value_id
