-- The runs, with what each holds.
--
-- A row per run.
--
-- run_id: the user's name for the run
-- run_at: the time by which runs are ordered (UTC), see `runs`
-- run_seq: the order in which runs first entered: it orders runs of equal run_at
-- branch: the run's branch, empty without one
-- suite: the run's suite, empty without one
-- workloads: different dump folders
-- dumps: modules as dumped
-- modules: different modules among them
-- new_modules: modules that no run before it has, of any branch
-- incomplete: dumps that are partial or failed
-- oom: dumps of programs that XLA found no room for
-- largest_peak_bytes: the largest peak in memory space 0
-- ingested_at: when the run was first ingested (UTC)
-- source: the path that was ingested
-- hosts: the hosts whose parts the run holds, with a comma between them; empty without any
WITH parts AS (
    SELECT run_id, STRING_AGG(NULLIF(host, ''), ', ' ORDER BY host) AS hosts
    FROM run_parts
    GROUP BY run_id
),

first_seen AS (
    SELECT dumps.module_id, MIN(_ordered_runs.place) AS place
    FROM dumps
    INNER JOIN _ordered_runs ON _ordered_runs.run_id = dumps.run_id
    GROUP BY dumps.module_id
)

SELECT
    runs.run_id,
    runs.run_at,
    runs.run_seq,
    lineages.branch,
    lineages.suite,
    COUNT(DISTINCT dumps.workload) AS workloads,
    COUNT(dumps.dump_id) AS dumps,
    COUNT(DISTINCT dumps.module_id) AS modules,
    COUNT(DISTINCT CASE WHEN first_seen.place = _ordered_runs.place THEN dumps.module_id END)
        AS new_modules,
    COUNT(CASE WHEN dumps.status <> 'ok' THEN 1 END) AS incomplete,
    COUNT(CASE WHEN dumps.oom THEN 1 END) AS oom,
    MAX(module_memory.peak_bytes) AS largest_peak_bytes,
    runs.ingested_at,
    runs.source,
    COALESCE(MAX(parts.hosts), '') AS hosts
FROM runs
INNER JOIN _ordered_runs ON _ordered_runs.run_id = runs.run_id
LEFT JOIN parts ON parts.run_id = runs.run_id
LEFT JOIN lineages ON lineages.run_id = runs.run_id
LEFT JOIN dumps ON dumps.run_id = runs.run_id
LEFT JOIN first_seen ON first_seen.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id
        AND module_memory.memory_space = 0
GROUP BY
    runs.run_id,
    runs.run_at,
    runs.run_seq,
    lineages.branch,
    lineages.suite,
    runs.ingested_at,
    runs.source
