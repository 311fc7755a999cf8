-- The newest of each name: a row a module, for joins that must not multiply.
--
-- A row per module: `JOIN latest USING (module_id)` keeps the rows of any view of modules as they
-- are, while `JOIN dumps USING (module_id)` repeats them for each run and each host. Where
-- several series have the module, hosts for example, the row is of the first workload, and
-- `series` counts them. A name that the default branch has is told of this branch alone: main,
-- else master, else the runs without a branch. A series that is gone has a row until its name
-- goes on with another series: `runs_since = 0` keeps those that are alive.
--
-- module_id: the module, see `modules`
-- module_name: the HLO module's name
-- workload: the dump's folder within the run; of several the first
-- workloads: all workloads that have the module, with a comma between them
-- series: the number of series that have the module
-- platform: cpu, gpu or tpu
-- program_id: what the program is, without names and lines, see `modules`
-- run_id: the run of the dump
-- run_at: when the run's programs were compiled (UTC)
-- runs_since: the branch's runs after the series' last dump: 0 while the series is alive
-- branch: the run's branch, empty without one
-- suite: the run's suite, empty without one
-- series_id: the series, see `history`
-- dump_id: the dump, see `dumps`
WITH ranked AS (
    SELECT
        dumps.module_id,
        dumps.module_name,
        dumps.workload,
        dumps.platform,
        dumps.run_id,
        runs.run_at,
        _newest.runs_since,
        _newest.branch,
        _newest.suite,
        _newest.series_id,
        _newest.dump_id,
        COUNT(*) OVER (PARTITION BY dumps.module_id) AS series,
        ROW_NUMBER() OVER (
            PARTITION BY dumps.module_id
            ORDER BY
                _newest.branch_rank,
                runs.run_at DESC,
                runs.run_seq DESC,
                dumps.workload,
                dumps.occurrence,
                dumps.dump_id
        ) AS place
    FROM _newest
    INNER JOIN dumps ON dumps.dump_id = _newest.dump_id
    INNER JOIN runs ON runs.run_id = dumps.run_id
),

named AS (
    SELECT module_id, STRING_AGG(DISTINCT workload, ', ' ORDER BY workload) AS workloads
    FROM ranked
    GROUP BY module_id
)

SELECT
    ranked.module_id,
    ranked.module_name,
    ranked.workload,
    named.workloads,
    ranked.series,
    ranked.platform,
    modules.program_id,
    ranked.run_id,
    ranked.run_at,
    ranked.runs_since,
    ranked.branch,
    ranked.suite,
    ranked.series_id,
    ranked.dump_id
FROM ranked
INNER JOIN named ON named.module_id = ranked.module_id
INNER JOIN modules ON modules.module_id = ranked.module_id
WHERE ranked.place = 1
