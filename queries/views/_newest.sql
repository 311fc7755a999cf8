-- Which dump of each series is the newest with content: what a module's name means today.
--
-- A row per series. A name that the default branch has is told of this branch alone: main, else
-- master, else the runs without a branch, else the branch that had the name last. A series that
-- is gone is left out where its name goes on with another series.
--
-- dump_id: the dump, see `dumps`
-- series_id: the series, see `history`
-- run_number: the place of the series' last run in its lineage, see `lineages`
-- branch: the run's branch, empty without one
-- suite: the run's suite, empty without one
-- branch_rank: of the run's branch, see `_branch_ranks`
-- runs_since: the lineage's runs after the series' last dump: 0 while the series is alive
WITH lasts AS (
    SELECT
        history.series_id,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        _branch_ranks.branch,
        _branch_ranks.suite,
        _branch_ranks.run_number,
        _branch_ranks.branch_rank,
        runs.run_at,
        runs.run_seq
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN runs ON runs.run_id = dumps.run_id
    INNER JOIN _branch_ranks ON _branch_ranks.run_id = dumps.run_id
    WHERE history.is_last
),

placed AS (
    SELECT
        *,
        FIRST_VALUE(branch) OVER (
            PARTITION BY workload, module_name, platform
            ORDER BY branch_rank, run_at DESC, run_seq DESC
        ) AS told_branch,
        MAX(run_number) OVER (PARTITION BY branch, suite, workload, module_name, platform)
            AS told_number
    FROM lasts
),

lengths AS (
    SELECT branch, suite, MAX(run_number) AS runs
    FROM lineages
    GROUP BY branch, suite
),

-- The last dump of a series may be unreadable: then the newest one that is not.
readable AS (
    SELECT
        history.series_id,
        dumps.dump_id,
        ROW_NUMBER() OVER (PARTITION BY history.series_id ORDER BY history.chain_index DESC) AS age
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    WHERE dumps.module_id IS NOT NULL
)

SELECT
    readable.dump_id,
    placed.series_id,
    placed.run_number,
    placed.branch,
    placed.suite,
    placed.branch_rank,
    lengths.runs - placed.run_number AS runs_since
FROM placed
INNER JOIN lengths ON lengths.branch = placed.branch AND lengths.suite = placed.suite
INNER JOIN readable ON readable.series_id = placed.series_id AND readable.age = 1
WHERE placed.branch = placed.told_branch AND placed.run_number = placed.told_number
