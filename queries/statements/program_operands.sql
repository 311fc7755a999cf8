-- What each instruction of module $1 reads, in order.
SELECT
    instruction_id,
    operand_instruction_id
FROM operands
WHERE module_id = $1
ORDER BY instruction_id, operand_number
