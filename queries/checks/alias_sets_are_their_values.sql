-- An alias set lives as long as its values in temp allocations, and is idle within its life.
WITH held AS (
    SELECT
        "values".module_id,
        "values".alias_set,
        MIN(live_ranges.start_time) AS start_time,
        MAX(live_ranges.end_time) AS end_time,
        MAX("values".size_bytes) AS size_bytes
    FROM "values"
    INNER JOIN live_ranges
        ON live_ranges.module_id = "values".module_id
            AND live_ranges.value_id = "values".value_id
    INNER JOIN allocations
        ON allocations.module_id = "values".module_id
            AND allocations.allocation_index = "values".allocation_index
    WHERE allocations.is_temp
    GROUP BY "values".module_id, "values".alias_set
)

SELECT
    alias_sets.module_id,
    'alias set ' || alias_sets.alias_set || ' lives from ' || alias_sets.start_time || ' to '
    || alias_sets.end_time || ', is idle from ' || alias_sets.idle_start_time || ' to '
    || alias_sets.idle_end_time AS breach
FROM alias_sets
LEFT JOIN held
    ON held.module_id = alias_sets.module_id
        AND held.alias_set = alias_sets.alias_set
LEFT JOIN "values" AS largest
    ON largest.module_id = alias_sets.module_id
        AND largest.value_id = alias_sets.value_id
WHERE held.alias_set IS NULL
    OR held.start_time <> alias_sets.start_time
    OR held.end_time <> alias_sets.end_time
    OR largest.size_bytes IS DISTINCT FROM held.size_bytes
    OR largest.alias_set IS DISTINCT FROM alias_sets.alias_set
    OR alias_sets.idle_start_time > alias_sets.idle_end_time
    OR alias_sets.idle_end_time > alias_sets.end_time
    OR alias_sets.peak_idle_time > alias_sets.idle_end_time - alias_sets.idle_start_time
UNION ALL
SELECT held.module_id, 'values share alias set ' || held.alias_set || ', which is not there'
FROM held
WHERE held.alias_set IS NOT NULL
    AND held.module_id IN (SELECT module_id FROM alias_sets)
    AND NOT EXISTS (
        SELECT 1
        FROM alias_sets
        WHERE alias_sets.module_id = held.module_id
            AND alias_sets.alias_set = held.alias_set
    )
