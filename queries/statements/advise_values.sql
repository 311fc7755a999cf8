-- The values of module $1 in memory space $2 that have a live range and a place.
SELECT
    "values".value_id,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".alias_set,
    live_ranges.start_time,
    live_ranges.end_time
FROM "values"
INNER JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
INNER JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
WHERE
    "values".module_id = $1
    AND allocations.memory_space = $2
    AND NOT allocations.is_thread_local
ORDER BY "values".value_id
