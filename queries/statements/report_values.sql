-- The values of module $1 in memory space $2: what the report tells of the one that is pinned.
SELECT
    "values".value_id,
    "values".instruction_id,
    "values".shape_index,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".logical_bytes,
    "values".shape,
    "values".origin_instruction_id,
    "values".origin_rule,
    "values".pass,
    "values".role,
    COALESCE("values".alias_set, "values".value_id) AS alias_set,
    "values".residual_id IS NOT NULL AS is_saved_for_backward,
    "values".last_use_time,
    live_ranges.start_time,
    live_ranges.end_time,
    alias_sets.peak_idle_time
FROM "values"
LEFT JOIN live_ranges
    ON live_ranges.module_id = $1
        AND live_ranges.value_id = "values".value_id
LEFT JOIN alias_sets
    ON alias_sets.module_id = $1
        AND alias_sets.alias_set = COALESCE("values".alias_set, "values".value_id)
WHERE "values".module_id = $1 AND "values".memory_space = $2
ORDER BY "values".value_id
