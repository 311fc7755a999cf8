-- The arguments of module $1 with their roles, and whether the program has a backward pass.
SELECT
    value_id,
    role,
    EXISTS(
        SELECT 1 FROM instructions
        WHERE module_id = $1 AND pass = 'backward'
    ) AS trains
FROM "values"
WHERE module_id = $1 AND role IN ('weight', 'optimizer state', 'state', 'input')
ORDER BY value_id
