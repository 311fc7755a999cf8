-- The source line whose buffers grow most from module $1 to module $2 at the peaks of memory
-- space $3, by their counted bytes. If $1 is null: the line that most of the peak belongs to.
SELECT
    source_file,
    source_line,
    CAST(
        SUM(CASE WHEN module_id = $2 THEN counted_at_peak_bytes ELSE -counted_at_peak_bytes END)
        AS BIGINT
    ) AS change_bytes
FROM _module_buffers
WHERE module_id IN ($1, $2)
    AND memory_space = $3
    AND is_live_at_peak
    AND source_file IS NOT NULL
GROUP BY source_file, source_line
HAVING change_bytes > 0
ORDER BY change_bytes DESC, source_file, source_line
LIMIT 1
