-- What each instruction says of the values that it makes and of those whose origin it is.
--
-- A row per instruction.
--
-- module_id: the module, see `modules`
-- instruction_id: the instruction, see `instructions`
-- instruction: its name
-- opcode: its opcode
-- op_name: the framework's name of the operation, or of the argument
-- source_file: the Python file of the line that created the instruction
-- source_line: that line
-- stack_frame_id: the innermost Python frame, see `stack_frames`
-- scope: the op_name's path without transformations, wrappers and loops, see `scopes`
-- operation: the op_name's last component
SELECT
    instructions.module_id,
    instructions.instruction_id,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    instructions.stack_frame_id,
    scopes.scope,
    scopes.operation
FROM instructions
LEFT JOIN scopes
    ON scopes.module_id = instructions.module_id
        AND scopes.scope_id = instructions.scope_id
