-- The rows of `memhouse fragmentation`: of run $1 and workload $2, where they are not null.
-- Without a run, all temp allocations of the latest dump of each series.
WITH chosen AS (
    SELECT run_id, workload, module_name, module_id, dump_id
    FROM dumps
    WHERE module_id IS NOT NULL
        AND workload = COALESCE($2, workload)
        AND (
            run_id = $1
            OR ($1 IS NULL AND dump_id IN (SELECT newest.dump_id FROM internal.newest))
        )
)

SELECT
    chosen.workload,
    chosen.module_name AS module,
    fragmentation.memory_space AS space,
    fragmentation.fragmentation_bytes,
    fragmentation.wasted AS share,
    fragmentation.size_bytes,
    chosen.run_id AS run,
    fragmentation.instruction AS fullest_at,
    fragmentation.live_bound_bytes
FROM chosen
INNER JOIN internal.fragmentation AS fragmentation ON fragmentation.module_id = chosen.module_id
ORDER BY
    fragmentation.fragmentation_bytes DESC, chosen.workload, chosen.module_name,
    fragmentation.memory_space, chosen.run_id, chosen.dump_id, fragmentation.allocation_index
