-- Every value that shares memory has a live range, within the schedule.
--
-- Thread-local values have no live range, and neither do some constants: constant.200 of
-- `tpu/decode-v5e`.
SELECT "values".module_id, 'value ' || "values".value_id || ' has no live range' AS breach
FROM "values"
INNER JOIN modules ON modules.module_id = "values".module_id
INNER JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id AND live_ranges.value_id = "values".value_id
WHERE NOT allocations.is_thread_local
    AND NOT allocations.is_constant
    AND modules.schedule_length IS NOT NULL
    AND live_ranges.value_id IS NULL
UNION ALL
SELECT
    live_ranges.module_id,
    'value ' || live_ranges.value_id || ' lives from ' || live_ranges.start_time || ' to '
    || live_ranges.end_time || ' in a schedule of ' || modules.schedule_length
FROM live_ranges
INNER JOIN modules ON modules.module_id = live_ranges.module_id
WHERE live_ranges.start_time > live_ranges.end_time
    OR live_ranges.end_time > modules.schedule_length
