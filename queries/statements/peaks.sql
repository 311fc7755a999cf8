-- The rows of `memhouse peaks`: of run $1 and workload $2, where they are not null. Without a
-- run, the latest of each series.
WITH ranked AS (
    SELECT
        peaks.*,
        ROW_NUMBER() OVER (
            PARTITION BY history.series_id, peaks.memory_space
            ORDER BY peaks.run_at DESC, peaks.run_id DESC
        ) AS age
    FROM peaks
    INNER JOIN history ON history.dump_id = peaks.dump_id
    WHERE peaks.run_id = COALESCE($1, peaks.run_id)
        AND peaks.workload = COALESCE($2, peaks.workload)
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
    memory_space,
    packing_bytes,
    origin
FROM ranked
WHERE age = 1
ORDER BY memory_space, peak_bytes DESC NULLS LAST, run_at, workload, module_name
