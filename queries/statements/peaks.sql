-- The rows of `memhouse peaks`: of a run and a workload where they are given; without a run
-- the latest of each series.
WITH ranked AS (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY workload, module_name, platform, memory_space, occurrence
            ORDER BY run_at DESC, run_id DESC
        ) AS age
    FROM peaks
    WHERE run_id = COALESCE($1, run_id) AND workload = COALESCE($2, workload)
)
SELECT
    workload,
    module_name AS module,
    COALESCE(
        space_name, CASE WHEN memory_space = 0 THEN 'default' ELSE 'space ' || memory_space END
    ) AS space,
    peak_bytes,
    total_bytes,
    run_id AS run,
    padding_bytes,
    peak_instruction,
    memory_space
FROM ranked
WHERE age = 1 OR $1 IS NOT NULL
ORDER BY memory_space, peak_bytes DESC NULLS LAST, run_at, workload, module_name
