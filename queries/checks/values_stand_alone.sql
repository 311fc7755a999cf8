-- A value's first position is where it is defined, and two values never share a position.
SELECT
    positions.module_id,
    'the first position of value ' || positions.value_id || ' is not where it is defined'
        AS breach
FROM positions
INNER JOIN "values"
    ON "values".module_id = positions.module_id AND "values".value_id = positions.value_id
WHERE positions.position_index = 0
    AND (
        positions.instruction_id <> "values".instruction_id
        OR positions.shape_index <> "values".shape_index
    )
UNION ALL
SELECT
    positions.module_id,
    'values ' || MIN(positions.value_id) || ' and ' || MAX(positions.value_id)
    || ' share a position'
FROM positions
GROUP BY positions.module_id, positions.instruction_id, positions.shape_index
HAVING COUNT(*) > 1
