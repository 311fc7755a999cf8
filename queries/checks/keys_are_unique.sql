-- No row of a bulk table stands twice: their keys have no index to hold them.
SELECT module_id, 'allocation ' || allocation_index || ' stands twice' AS breach
FROM allocations GROUP BY module_id, allocation_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'value ' || value_id || ' stands twice'
FROM "values" GROUP BY module_id, value_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'position ' || position_index || ' of value ' || value_id || ' stands twice'
FROM positions GROUP BY module_id, value_id, position_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'use ' || use_index || ' of value ' || value_id || ' stands twice'
FROM uses GROUP BY module_id, value_id, use_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'instruction ' || MIN(instruction) || ' stands twice'
FROM instructions GROUP BY module_id, instruction_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'instruction ' || instruction || ' has two numbers'
FROM instructions GROUP BY module_id, instruction HAVING COUNT(*) > 1
