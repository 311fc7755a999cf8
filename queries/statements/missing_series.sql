-- The series of the run before $1 that $1 does not have: workload and module.
SELECT before.workload, before.module_name
FROM dumps AS before
WHERE before.run_id = (
        SELECT run_id FROM runs
        WHERE run_at < (SELECT run_at FROM runs WHERE run_id = $1)
        ORDER BY run_at DESC, run_id DESC
        LIMIT 1
    )
    AND NOT EXISTS (
        SELECT 1 FROM dumps AS now
        WHERE now.run_id = $1
            AND now.workload = before.workload
            AND now.module_name = before.module_name
            AND now.occurrence = before.occurrence
    )
ORDER BY before.workload, before.module_name
