-- The instructions that read the values of module $1 in memory space $2: up to $3 a value, in
-- the order of their times, and how many there are.
WITH reading AS (
    SELECT
        uses.value_id,
        uses.instruction_id,
        ANY_VALUE(instructions.schedule_time) AS schedule_time
    FROM "values"
    INNER JOIN uses ON uses.module_id = $1 AND uses.value_id = "values".value_id
    INNER JOIN instructions
        ON instructions.module_id = $1
            AND instructions.instruction_id = uses.instruction_id
    WHERE "values".module_id = $1 AND "values".memory_space = $2
    -- An instruction that reads a value as several of its operands is one reader.
    GROUP BY uses.value_id, uses.instruction_id
)

SELECT
    value_id,
    instruction_id,
    COUNT(*) OVER (PARTITION BY value_id) AS readers,
    ROW_NUMBER() OVER (
        PARTITION BY value_id ORDER BY schedule_time NULLS LAST, instruction_id
    ) AS place
FROM reading
QUALIFY place <= $3
ORDER BY value_id, place
