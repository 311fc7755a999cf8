-- The rows of `memhouse trends`: of workload $1, since $2 and in memory space $3 where they
-- are given.
SELECT *
FROM trends
WHERE workload = COALESCE($1, workload)
    AND run_at >= COALESCE(CAST($2 AS TIMESTAMPTZ), run_at)
    AND memory_space = COALESCE($3, memory_space)
ORDER BY workload, module_name, platform, occurrence, memory_space, run_at, run_id
