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
ORDER BY instruction_id
