-- The series of the run before $1 that $1 does not have: workload and module.
WITH before AS (
    SELECT run_id
    FROM runs
    WHERE run_at < (SELECT run_at FROM runs WHERE run_id = $1)
    ORDER BY run_at DESC, run_id DESC
    LIMIT 1
)

SELECT dumps.workload, dumps.module_name
FROM dumps
INNER JOIN before ON before.run_id = dumps.run_id
INNER JOIN history ON history.dump_id = dumps.dump_id
WHERE history.series_id NOT IN (
        SELECT series.series_id
        FROM history AS series
        INNER JOIN dumps AS now ON now.dump_id = series.dump_id
        WHERE now.run_id = $1
    )
ORDER BY dumps.workload, dumps.module_name
