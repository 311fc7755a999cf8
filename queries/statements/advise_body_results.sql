-- What computation $2 of module $1, a loop's body, hands to the next turn: a row per place.
WITH roots AS (
    SELECT MAX(instructions.instruction_id) AS instruction_id
    FROM instructions
    LEFT JOIN operands
        ON operands.module_id = instructions.module_id
            AND operands.operand_instruction_id = instructions.instruction_id
    WHERE
        instructions.module_id = $1
        AND instructions.computation = $2
        AND instructions.opcode = 'tuple'
        AND operands.instruction_id IS NULL
)

SELECT
    operands.operand_number AS place,
    operands.operand_instruction_id AS instruction_id
FROM roots
INNER JOIN operands
    ON operands.module_id = $1 AND operands.instruction_id = roots.instruction_id
ORDER BY operands.operand_number
