-- The arguments of module $1 with their roles, and its outputs with the passes that make them.
SELECT
    value_id,
    role,
    pass
FROM "values"
WHERE
    module_id = $1
    AND role IN ('weight', 'optimizer state', 'state', 'input', 'output')
ORDER BY value_id
