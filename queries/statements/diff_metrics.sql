-- The metrics of module $1 beside those of module $2 in all memory spaces, where they differ.
--
-- peak_live_bytes has no history, and is shown here all the same.
WITH figures AS (
    SELECT * FROM metrics
    UNION ALL
    SELECT module_id, memory_space, 'peak_live_bytes', peak_live_bytes FROM module_memory
),

a AS (SELECT * FROM figures WHERE module_id = $1),

b AS (SELECT * FROM figures WHERE module_id = $2)

SELECT
    COALESCE(a.memory_space, b.memory_space) AS memory_space,
    COALESCE(a.metric, b.metric) AS metric,
    a.value_bytes AS a_bytes,
    b.value_bytes AS b_bytes,
    COALESCE(b.value_bytes, 0) - COALESCE(a.value_bytes, 0) AS change_bytes
FROM a
FULL JOIN b ON b.memory_space = a.memory_space AND b.metric = a.metric
WHERE a.value_bytes IS DISTINCT FROM b.value_bytes
ORDER BY 1, ABS(COALESCE(b.value_bytes, 0) - COALESCE(a.value_bytes, 0)) DESC, 2
