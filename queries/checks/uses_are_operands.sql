-- A value is used by what has an operand where it stands, and by nothing else.
--
-- As XLA finds uses: a tuple passes all of its operands on, a get-tuple-element and a copy
-- all but the outermost.
WITH standing AS (
    SELECT
        positions.module_id,
        positions.value_id,
        operands.instruction_id,
        operands.operand_number,
        positions.shape_index
    FROM positions
    INNER JOIN operands
        ON operands.module_id = positions.module_id
        AND operands.operand_instruction_id = positions.instruction_id
)
SELECT
    uses.module_id,
    'value ' || uses.value_id || ' does not stand in operand ' || uses.operand_number
        || ' of its use ' || uses.use_index AS breach
FROM uses
LEFT JOIN standing
    ON standing.module_id = uses.module_id
    AND standing.value_id = uses.value_id
    AND standing.instruction_id = uses.instruction_id
    AND standing.operand_number = uses.operand_number
    AND standing.shape_index = uses.operand_shape_index
WHERE standing.value_id IS NULL
    AND uses.module_id IN (SELECT module_id FROM computations)
UNION ALL
SELECT
    standing.module_id,
    'value ' || standing.value_id || ' stands in operand ' || standing.operand_number || ' of '
        || instructions.instruction || ', which is no use of it'
FROM standing
INNER JOIN instructions
    ON instructions.module_id = standing.module_id
    AND instructions.instruction_id = standing.instruction_id
LEFT JOIN uses
    ON uses.module_id = standing.module_id
    AND uses.value_id = standing.value_id
    AND uses.instruction_id = standing.instruction_id
    AND uses.operand_number = standing.operand_number
    AND uses.operand_shape_index = standing.shape_index
WHERE uses.value_id IS NULL
    AND instructions.opcode NOT IN ('tuple', 'domain')
    AND NOT (
        instructions.opcode IN ('get-tuple-element', 'copy') AND standing.shape_index <> '{}'
    )
