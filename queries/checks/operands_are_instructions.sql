-- Every operand is an instruction of the module.
SELECT operands.module_id, 'operand without its instruction: ' || operands.instruction_id AS breach
FROM operands
LEFT JOIN instructions
    ON instructions.module_id = operands.module_id
        AND instructions.instruction_id = operands.operand_instruction_id
WHERE instructions.computation IS NULL
