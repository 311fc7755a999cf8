-- The series among $1 that a run lacks and the run before had, with their last dumps.
SELECT
    gone.series_id,
    gone.run_id,
    runs.run_at,
    lineages.run_number,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.run_id AS previous_run,
    modules.program_id
FROM gone
INNER JOIN runs ON runs.run_id = gone.run_id
INNER JOIN lineages ON lineages.run_id = gone.run_id
INNER JOIN dumps ON dumps.dump_id = gone.last_dump_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
WHERE gone.series_id IN (SELECT UNNEST($1))
