-- The out-of-memory reports of run $1, those that stopped the compiler first.
SELECT *
FROM oom_reports
WHERE run_id = $1
ORDER BY kind = 'runtime', dump_id IS NULL, path, line
