-- A value's uses are exactly the operands at its positions.
--
-- XLA does not count all operands: a tuple uses none of its operands, a get-tuple-element and a
-- copy only the outermost part of theirs.
WITH placed AS (
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
    'value ' || uses.value_id || ' is not at operand ' || uses.operand_number
    || ' of its use ' || uses.use_index AS breach
FROM uses
LEFT JOIN placed
    ON placed.module_id = uses.module_id
        AND placed.value_id = uses.value_id
        AND placed.instruction_id = uses.instruction_id
        AND placed.operand_number = uses.operand_number
        AND placed.shape_index = uses.operand_shape_index
WHERE placed.value_id IS NULL
    AND uses.module_id IN (SELECT module_id FROM computations)
UNION ALL
SELECT
    placed.module_id,
    'value ' || placed.value_id || ' is at operand ' || placed.operand_number || ' of '
    || instructions.instruction || ', and that operand is not a use of the value'
FROM placed
INNER JOIN instructions
    ON instructions.module_id = placed.module_id
        AND instructions.instruction_id = placed.instruction_id
LEFT JOIN uses
    ON uses.module_id = placed.module_id
        AND uses.value_id = placed.value_id
        AND uses.instruction_id = placed.instruction_id
        AND uses.operand_number = placed.operand_number
        AND uses.operand_shape_index = placed.shape_index
WHERE uses.value_id IS NULL
    AND instructions.opcode NOT IN ('tuple', 'domain')
    AND NOT (
        instructions.opcode IN ('get-tuple-element', 'copy') AND placed.shape_index <> '{}'
    )
