-- The rows of `memhouse fragmentation`: of run $1 and workload $2, where they are not null.
-- Without a run, the latest of each series.
WITH ranked AS (
    SELECT
        dumps.run_id,
        dumps.workload,
        dumps.module_name,
        fragmentation.*,
        ROW_NUMBER() OVER (
            PARTITION BY
                history.series_id, fragmentation.memory_space, fragmentation.allocation_index
            ORDER BY runs.run_at DESC, runs.run_id DESC
        ) AS age
    FROM fragmentation
    INNER JOIN dumps ON dumps.module_id = fragmentation.module_id
    INNER JOIN runs ON runs.run_id = dumps.run_id
    INNER JOIN history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id = COALESCE($1, dumps.run_id)
        AND dumps.workload = COALESCE($2, dumps.workload)
)

SELECT
    workload,
    module_name AS module,
    memory_space AS space,
    packing_bytes,
    wasted AS share,
    size_bytes,
    run_id AS run,
    instruction AS fullest_at,
    live_bound_bytes
FROM ranked
WHERE age = 1
ORDER BY packing_bytes DESC, workload, module_name, memory_space, run_id, allocation_index
