-- Every value that is live at XLA's own peak is in XLA's list of that peak.
--
-- The lists of old XLA versions name instructions without an index.
SELECT
    live_ranges.module_id,
    instructions.instruction || "values".shape_index || ' is live at '
    || modules.reported_peak_time || ' and not reported' AS breach
FROM modules
INNER JOIN live_ranges
    ON live_ranges.module_id = modules.module_id
        AND modules.reported_peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time
INNER JOIN "values"
    ON "values".module_id = live_ranges.module_id AND "values".value_id = live_ranges.value_id
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
        AND instructions.instruction_id = "values".instruction_id
LEFT JOIN reported_peak
    ON reported_peak.module_id = live_ranges.module_id
        AND reported_peak.instruction = instructions.instruction
        AND COALESCE(reported_peak.shape_index, "values".shape_index) = "values".shape_index
WHERE reported_peak.rank IS NULL
UNION ALL
SELECT
    reported_peak.module_id,
    reported_peak.instruction || COALESCE(reported_peak.shape_index, '') || ' is reported with '
    || reported_peak.size_bytes || ' bytes, its elements take ' || "values".logical_bytes
FROM reported_peak
INNER JOIN instructions
    ON instructions.module_id = reported_peak.module_id
        AND instructions.instruction = reported_peak.instruction
INNER JOIN "values"
    ON "values".module_id = reported_peak.module_id
        AND "values".instruction_id = instructions.instruction_id
        AND "values".shape_index = reported_peak.shape_index
WHERE "values".element_type IS NOT NULL
    AND reported_peak.size_bytes <> "values".logical_bytes
