-- Every operand is an instruction of the module, and every call calls a computation of it.
SELECT operands.module_id, 'operand without its instruction: ' || operands.instruction_id AS breach
FROM operands
LEFT JOIN instructions
    ON instructions.module_id = operands.module_id
        AND instructions.instruction_id = operands.operand_instruction_id
WHERE instructions.computation IS NULL
UNION ALL
SELECT calls.module_id, 'call of an unknown computation: ' || calls.computation
FROM calls
LEFT JOIN computations
    ON computations.module_id = calls.module_id AND computations.computation = calls.computation
WHERE computations.computation IS NULL
