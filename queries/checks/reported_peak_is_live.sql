-- Every value that XLA lists as live at its own peak is live at that time.
--
-- The lists of old XLA versions name no index: any value of the instruction will do.
SELECT
    reported_peak.module_id,
    reported_peak.instruction || COALESCE(reported_peak.shape_index, '')
    || ' is reported as live at ' || modules.reported_peak_time || ' and is not' AS breach
FROM reported_peak
INNER JOIN modules ON modules.module_id = reported_peak.module_id
WHERE NOT EXISTS (
        SELECT 1
        FROM instructions
        INNER JOIN "values"
            ON "values".module_id = instructions.module_id
                AND "values".instruction_id = instructions.instruction_id
        INNER JOIN live_ranges
            ON live_ranges.module_id = "values".module_id
                AND live_ranges.value_id = "values".value_id
        WHERE instructions.module_id = reported_peak.module_id
            AND instructions.instruction = reported_peak.instruction
            AND (
                reported_peak.shape_index IS NULL
                OR "values".shape_index = reported_peak.shape_index
            )
            AND modules.reported_peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time
    )
