-- The runs in which memory ran out, the latest first.
SELECT run_id
FROM runs
WHERE
    run_id IN (SELECT oom_reports.run_id FROM oom_reports)
    OR run_id IN (SELECT dumps.run_id FROM dumps WHERE dumps.oom)
ORDER BY run_at DESC, run_seq DESC
