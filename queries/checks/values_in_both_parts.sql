-- BufferAssignment and Used values have the same values.
--
-- If a dump has only one of the two parts, `dumps_are_complete` says so.
SELECT
    values_.module_id,
    'value ' || values_.value_id || CASE
        WHEN values_.allocation_index IS NULL THEN ' of Used values is in no allocation'
        ELSE ' of BufferAssignment is not in Used values'
    END AS breach
FROM "values" AS values_
LEFT JOIN positions
    ON positions.module_id = values_.module_id
        AND positions.value_id = values_.value_id
        AND positions.position_index = 0
WHERE (values_.allocation_index IS NULL OR positions.value_id IS NULL)
    AND values_.module_id IN (SELECT module_id FROM allocations)
    AND values_.module_id IN (SELECT module_id FROM positions)
