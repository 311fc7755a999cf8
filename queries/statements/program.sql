-- name: instructions
-- The instructions of module $1's HLO text in its order, with what makes them a program.
SELECT
    instruction,
    opcode,
    shape,
    computation,
    custom_call_target,
    is_root,
    parameter_number,
    tuple_index,
    fusion_kind,
    attributes
FROM instructions
WHERE module_id = $1 AND computation IS NOT NULL
ORDER BY instruction_id;

-- name: computations
-- The computations of module $1.
SELECT
    computation,
    is_entry
FROM computations
WHERE module_id = $1;

-- name: operands
-- The operands of module $1's instructions, in order.
SELECT
    instruction_id,
    operand_instruction_id
FROM operands
WHERE module_id = $1
ORDER BY instruction_id, operand_number;

-- name: calls
-- The computations that module $1's instructions call.
SELECT
    instruction_id,
    attribute,
    computation
FROM calls
WHERE module_id = $1;

-- name: control_dependencies
-- The instructions of module $1 that run before others, though these do not read them.
SELECT
    instruction_id,
    predecessor_instruction_id
FROM control_dependencies
WHERE module_id = $1;

-- name: donations
-- Which results of module $1 lie in the memory of which arguments.
SELECT
    output_shape_index,
    parameter_number,
    parameter_shape_index,
    paired_by
FROM donations
WHERE module_id = $1;
