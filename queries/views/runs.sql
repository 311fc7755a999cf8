-- The runs in order: of equal times the one that entered first.
--
-- A row per run.
CREATE VIEW _ordered_runs AS
SELECT
    run_id,
    run_at,
    run_seq,
    ROW_NUMBER() OVER (ORDER BY run_at, run_seq) AS place
FROM runs;

-- The runs, with what each holds.
--
-- A row per run.
--
-- Key: run_id.
--
-- run_seq: the order in which runs first entered: it orders runs of equal run_at
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
CREATE VIEW runs_summary AS
WITH parts AS (
    SELECT run_id, STRING_AGG(host, ', ' ORDER BY host) AS hosts
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
    runs.source;

-- The rank of each run's branch: the default branch is the first of those that there are.
--
-- A row per run.
CREATE VIEW _branch_ranks AS
SELECT
    run_id,
    branch,
    suite,
    run_number,
    CASE branch WHEN 'main' THEN 1 WHEN 'master' THEN 2 WHEN '' THEN 3 ELSE 4 END AS branch_rank
FROM lineages;

-- Which dump of each series is the newest with content: what a module's name means today.
--
-- A row per series. A name that the default branch has is told of this branch alone: main, else
-- master, else the runs without a branch, else the branch that had the name last. A series that
-- is gone is left out where its name goes on with another series.
CREATE VIEW _newest AS
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
    -- What `memhouse fit` compiles is a size that was asked about, and not what a name means.
    WHERE history.is_last
        AND dumps.run_id NOT IN (SELECT run_id FROM run_labels WHERE key = 'fit')
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
WHERE placed.branch = placed.told_branch AND placed.run_number = placed.told_number;

-- What every public view says of a dump: the catalogue joins it to the rows of views.
--
-- A row per dump.
CREATE VIEW _dumped AS
SELECT
    dumps.run_id,
    dumps.workload,
    dumps.module_name,
    _newest.dump_id IS NOT NULL AS is_latest,
    _entry_programs.is_entry,
    dumps.dump_id,
    dumps.module_id
FROM dumps
INNER JOIN _entry_programs ON _entry_programs.dump_id = dumps.dump_id
LEFT JOIN _newest ON _newest.dump_id = dumps.dump_id;

-- The newest of each name: a row a module, for joins that must not multiply.
--
-- A row per module: `JOIN latest USING (module_id)` keeps the rows of any table of modules as they
-- are, while `JOIN dumps USING (module_id)` repeats them for each run and each host. A view says
-- the same by itself: `WHERE is_latest`. Where
-- several series have the module, hosts for example, the row is of the first workload, and
-- `series` counts them. A name that the default branch has is told of this branch alone: main,
-- else master, else the runs without a branch. A series that is gone has a row until its name
-- goes on with another series: `runs_since = 0` keeps those that are alive.
--
-- Key: module_id.
--
-- workload: the dump's folder within the run; of several the first
-- workloads: all workloads that have the module, with a comma between them
-- series: the number of series that have the module
-- runs_since: the branch's runs after the series' last dump: 0 while the series is alive
CREATE VIEW latest AS
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
WHERE ranked.place = 1;
