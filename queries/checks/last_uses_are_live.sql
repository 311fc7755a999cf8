-- The buffer that a value shares is live when the value is used last.
--
-- An estimate ends a value before its last user where the user may write in its place.
SELECT
    "values".module_id,
    'value ' || "values".value_id || ' is used last at ' || "values".last_use_time
    || ', its alias set lives from ' || alias_sets.start_time || ' to ' || alias_sets.end_time
        AS breach
FROM "values"
INNER JOIN alias_sets
    ON alias_sets.module_id = "values".module_id
        AND alias_sets.alias_set = "values".alias_set
INNER JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
INNER JOIN modules ON modules.module_id = "values".module_id
WHERE "values".last_use_time NOT BETWEEN alias_sets.start_time AND alias_sets.end_time
    AND modules.origin <> 'estimated'
