-- The rows of `memhouse fragmentation`: of run $1 and workload $2, where they are not null.
-- Without a run, all temp allocations of the latest dump of each series.
WITH ranked AS (
    SELECT
        dumps.run_id,
        dumps.workload,
        dumps.module_name,
        dumps.module_id,
        ROW_NUMBER() OVER (
            PARTITION BY history.series_id
            ORDER BY runs.run_at DESC, runs.run_id DESC
        ) AS age
    FROM dumps
    INNER JOIN runs ON runs.run_id = dumps.run_id
    INNER JOIN history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id = COALESCE($1, dumps.run_id)
        AND dumps.workload = COALESCE($2, dumps.workload)
        AND dumps.module_id IS NOT NULL
)

SELECT
    ranked.workload,
    ranked.module_name AS module,
    fragmentation.memory_space AS space,
    fragmentation.packing_bytes,
    fragmentation.wasted AS share,
    fragmentation.size_bytes,
    ranked.run_id AS run,
    fragmentation.instruction AS fullest_at,
    fragmentation.live_bound_bytes
FROM ranked
INNER JOIN fragmentation ON fragmentation.module_id = ranked.module_id
WHERE ranked.age = 1
ORDER BY
    fragmentation.packing_bytes DESC, ranked.workload, ranked.module_name,
    fragmentation.memory_space, ranked.run_id, fragmentation.allocation_index
