-- A value has its instruction's shape, and all values of one shape have one size.
SELECT
    "values".module_id,
    'value ' || "values".value_id || ' is ' || "values".shape || ', its instruction '
    || instructions.shape AS breach
FROM "values"
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
        AND instructions.instruction_id = "values".instruction_id
WHERE "values".shape_index = '{}'
    -- Some writers of texts leave the numbers of a tuple's elements out.
    AND "values".shape <> instructions.shape
    AND REGEXP_REPLACE("values".shape, '/\*index=\d+\*/', '', 'g')
    <> REGEXP_REPLACE(instructions.shape, '/\*index=\d+\*/', '', 'g')
UNION ALL
SELECT
    module_id,
    'value ' || value_id || ' takes ' || size_bytes || ' bytes, its elements ' || logical_bytes
FROM "values"
WHERE size_bytes < logical_bytes
UNION ALL
SELECT
    module_id,
    'values of ' || shape || ' take ' || MIN(size_bytes) || ' and ' || MAX(size_bytes) || ' bytes'
FROM "values"
WHERE element_type IS NOT NULL
GROUP BY module_id, shape
HAVING MIN(size_bytes) <> MAX(size_bytes)
