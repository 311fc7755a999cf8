-- What computes from what in computation $2 of module $1 and in the fusions that it calls: a row
-- per pair. An operand goes to its reader, a fusion's operand to the parameter within, and its
-- root to the fusion. Parameters are known by XLA's names for them, such as `param_1.25`.
WITH RECURSIVE reached AS (
    SELECT CAST($2 AS VARCHAR) AS computation
    UNION ALL
    SELECT calls.computation
    FROM reached
    INNER JOIN instructions
        ON instructions.module_id = $1 AND instructions.computation = reached.computation
    INNER JOIN calls
        ON calls.module_id = $1 AND calls.instruction_id = instructions.instruction_id
    WHERE instructions.opcode <> 'while'
),

inside AS (
    SELECT instructions.*
    FROM instructions
    WHERE
        instructions.module_id = $1
        AND instructions.computation IN (SELECT reached.computation FROM reached)
),

called AS (
    SELECT
        calls.instruction_id AS caller_id,
        calls.computation
    FROM calls
    INNER JOIN inside ON inside.instruction_id = calls.instruction_id
    WHERE calls.module_id = $1 AND inside.opcode <> 'while'
),

arguments AS (
    SELECT
        called.caller_id,
        operands.operand_number,
        operands.operand_instruction_id,
        inside.instruction_id AS parameter_id
    FROM called
    INNER JOIN operands
        ON operands.module_id = $1 AND operands.instruction_id = called.caller_id
    INNER JOIN inside
        ON inside.computation = called.computation
            AND inside.opcode = 'parameter'
            AND REGEXP_EXTRACT(inside.instruction, '^param(?:eter)?_(\d+)', 1)
            = CAST(operands.operand_number AS VARCHAR)
),

-- The root alone has no reader; a parameter without one comes before it.
roots AS (
    SELECT
        called.caller_id,
        MAX(inside.instruction_id) AS instruction_id
    FROM called
    INNER JOIN inside ON inside.computation = called.computation
    LEFT JOIN operands
        ON operands.module_id = $1 AND operands.operand_instruction_id = inside.instruction_id
    WHERE operands.instruction_id IS NULL
    GROUP BY called.caller_id
)

SELECT
    operands.operand_instruction_id AS source_id,
    operands.instruction_id AS target_id
FROM operands
INNER JOIN inside ON inside.instruction_id = operands.instruction_id
LEFT JOIN arguments
    ON arguments.caller_id = operands.instruction_id
        AND arguments.operand_number = operands.operand_number
WHERE operands.module_id = $1 AND arguments.caller_id IS NULL
UNION
SELECT
    operand_instruction_id,
    parameter_id
FROM arguments
UNION
SELECT
    instruction_id,
    caller_id
FROM roots
