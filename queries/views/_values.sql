-- Every value with its life, with what it holds, and with who made it.
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
-- instruction: the instruction that makes the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- opcode: the opcode of the instruction that makes the value
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- start_time: first time the value is live
-- end_time: last time the value is live; the schedule's length if the value lives out
-- last_use_time: the last time at which an instruction reads the value
-- op_name: the framework's name of what the value holds: an operation, or an argument
-- source_file: the Python file of the line that computes what the value holds
-- source_line: that line
-- stack_frame_id: the innermost Python frame of that line, see `stack_frames`
-- scope: the scope of what the value holds, see `scopes`
-- operation: the operation that computes what the value holds
-- pass: the pass that the value belongs to, see `values`
-- role: what the value is for, see `values`
-- origin_instruction: the instruction whose result the value holds
-- origin_rule: how the origin was found, see `values`; null if it is not known
-- is_saved_for_backward: the forward pass keeps the value for the backward pass
-- made_op_name: the framework's name of the instruction that makes the value
-- made_source_file: the Python file of the line that created this instruction
-- made_source_line: that line
SELECT
    _lives.module_id,
    _lives.memory_space,
    _lives.value_id,
    _lives.allocation_index,
    _lives.size_bytes,
    _lives.logical_bytes,
    _lives.padding_bytes,
    made.instruction,
    _lives.shape_index,
    made.opcode,
    _lives.shape,
    _lives.element_type,
    _lives.start_time,
    _lives.end_time,
    _lives.last_use_time,
    held.op_name,
    held.source_file,
    held.source_line,
    held.stack_frame_id,
    held.scope,
    held.operation,
    _lives.pass,
    _lives.role,
    held.instruction AS origin_instruction,
    _lives.origin_rule,
    _lives.residual_id IS NOT NULL AS is_saved_for_backward,
    made.op_name AS made_op_name,
    made.source_file AS made_source_file,
    made.source_line AS made_source_line
FROM _lives
-- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
-- larger side.
LEFT JOIN instructions AS made
    ON made.module_id = _lives.module_id
        AND made.instruction_id = _lives.instruction_id
LEFT JOIN _operations AS held
    ON held.module_id = _lives.module_id
        AND held.instruction_id = _lives.held_instruction_id
