-- The groups that have dumps in the runs that `followed_runs` marks.
SELECT DISTINCT followed_runs.lineage, dumps.workload, dumps.module_name, dumps.platform
FROM followed_runs
INNER JOIN dumps ON dumps.run_id = followed_runs.run_id
WHERE followed_runs.is_changed
