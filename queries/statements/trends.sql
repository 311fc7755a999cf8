-- The rows of `memhouse trends`: of workload $1, since the time $2, in memory space $3, of
-- metric $4; a null means all.
SELECT *
FROM trends
WHERE workload = COALESCE($1, workload)
    AND run_at >= COALESCE(CAST($2 AS TIMESTAMPTZ), run_at)
    AND memory_space = COALESCE($3, memory_space)
    AND metric = COALESCE($4, metric)
ORDER BY workload, module_name, platform, series_number, memory_space, metric, run_at, run_id
