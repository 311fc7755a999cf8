-- What the peak of module $1 in memory space $2 consists of: the categories, the largest first.
SELECT
    category,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS size_bytes,
    COUNT(*) AS buffers
FROM buffers
WHERE module_id = $1 AND memory_space = $2 AND is_live_at_peak
GROUP BY category
ORDER BY size_bytes DESC, category
