-- name: header
-- Where module $1 starts, and which of its arguments and results share memory.
SELECT
    computations.computation AS entry,
    modules.input_output_alias
FROM computations
INNER JOIN modules USING (module_id)
WHERE module_id = $1 AND computations.is_entry;

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

-- name: operands
-- What each instruction of module $1 reads, in order.
SELECT
    instruction_id,
    operand_instruction_id
FROM operands
WHERE module_id = $1
ORDER BY instruction_id, operand_number;
