-- What each device has on chip, for one program: see `docs/devices.md`.
--
-- A row per kind of device. Where two cores run one program, the memory of one core.
CREATE OR REPLACE VIEW internal.devices AS
SELECT
    facts.device_kind,
    facts.vmem_bytes,
    facts.scoped_vmem_bytes,
    facts.shared_bytes
FROM (
    VALUES
    ('TPU v2', 16777216, 16777216, NULL),
    ('TPU v3', 16777216, 16777216, NULL),
    ('TPU v4', 16777216, 16777216, NULL),
    ('TPU v4 core', 16777216, 16777216, NULL),
    ('TPU v5e', 134217728, 16777216, NULL),
    ('TPU v5p', 67108864, 16777216, NULL),
    ('TPU v5p core', 67108864, 16777216, NULL),
    ('TPU v6e', 134217728, 33554432, NULL),
    ('TPU7x', 67108864, 33554432, NULL),
    ('NVIDIA H100 80GB HBM3', NULL, NULL, 232448)
) AS facts (device_kind, vmem_bytes, scoped_vmem_bytes, shared_bytes);

-- The metrics: columns of `module_memory`, see METRICS in `schema/metrics.py`, and `modules`.flops.
--
-- A row per metric.
CREATE OR REPLACE VIEW internal.metric_names AS
SELECT
    metric,
    unit,
    is_better_higher,
    regresses
FROM (VALUES  -- noqa: LT02
    ('peak_bytes', 'bytes', FALSE, TRUE),
    ('total_bytes', 'bytes', FALSE, FALSE),
    ('reserved_bytes', 'bytes', FALSE, TRUE),
    ('argument_bytes', 'bytes', FALSE, TRUE),
    ('output_bytes', 'bytes', FALSE, TRUE),
    ('alias_bytes', 'bytes', TRUE, TRUE),
    ('constant_bytes', 'bytes', FALSE, FALSE),
    ('thread_local_bytes', 'bytes', FALSE, FALSE),
    ('temp_bytes', 'bytes', FALSE, TRUE),
    ('fragmentation_bytes', 'bytes', FALSE, TRUE),
    ('padding_bytes', 'bytes', FALSE, TRUE),
    ('live_bound_bytes', 'bytes', FALSE, TRUE),
    ('order_bytes', 'bytes', FALSE, TRUE),
    ('order_bound_bytes', 'bytes', FALSE, FALSE),
    ('flops', 'flops', FALSE, FALSE)
) AS listed (metric, unit, is_better_higher, regresses);  -- noqa: AL05

-- The runs in order: of equal times the one that entered first.
--
-- A row per run.
CREATE OR REPLACE VIEW internal.ordered_runs AS
SELECT
    run_id,
    run_at,
    run_seq,
    ROW_NUMBER() OVER (ORDER BY run_at, run_seq) AS place
FROM runs;

-- Which dumps are of entry programs: those that a workload is run for. The others are helpers,
-- such as eager operations and initialisers.
--
-- A row per dump. An entry program's peak in memory space 0 is at least 5 % of the largest peak of
-- its workload in the run, and at least half of it if the program has less than a tenth of the
-- instructions (an eager operation on a large array has two or three). A program whose name is in
-- the run's label `entry` is one too; several names have commas between them. A program that ran
-- out of memory, or whose peak is not known, is no helper.
CREATE OR REPLACE VIEW internal.entry_programs AS
WITH largest AS (
    SELECT
        dumps.run_id,
        dumps.workload,
        MAX(module_memory.peak_bytes) AS peak_bytes,
        MAX_BY(modules.schedule_length, module_memory.peak_bytes) AS schedule_length
    FROM dumps
    INNER JOIN modules ON modules.module_id = dumps.module_id
    INNER JOIN module_memory
        ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
    GROUP BY dumps.run_id, dumps.workload
)

SELECT
    dumps.dump_id,
    dumps.oom
    OR COALESCE(
        module_memory.peak_bytes
        >= largest.peak_bytes
        * CASE
            WHEN modules.schedule_length < 0.1 * largest.schedule_length THEN 0.5 ELSE 0.05
        END,
        TRUE
    )
    OR COALESCE(
        CONTAINS(',' || run_labels.value || ',', ',' || dumps.module_name || ','), FALSE
    ) AS is_entry
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
LEFT JOIN largest ON largest.run_id = dumps.run_id AND largest.workload = dumps.workload
LEFT JOIN run_labels ON run_labels.run_id = dumps.run_id AND run_labels.key = 'entry';

-- The series, each with whether it is alive: no program of its last run is in a later run.
--
-- A row per series, with the names that its last dump has; readable_dump_id is its last dump with
-- content.
CREATE OR REPLACE VIEW internal.series_ends AS
WITH placed AS (
    SELECT
        *,
        COUNT(*) OVER series AS runs,
        MAX(run_number) OVER series AS last_number,
        FIRST_VALUE(run_id) OVER (PARTITION BY series_id ORDER BY run_number) AS first_run_id,
        MAX_BY(dump_id, run_number) FILTER (module_id IS NOT NULL) OVER series
            AS readable_dump_id
    FROM internal.links
    WINDOW series AS (PARTITION BY series_id)
),

followed AS (
    SELECT *, MAX(last_number) OVER (PARTITION BY run_id) AS followed_number
    FROM placed
)

SELECT
    series_id,
    series_number,
    chain_index,
    dump_id,
    readable_dump_id,
    workload,
    module_name,
    platform,
    run_id,
    run_at,
    run_seq,
    branch,
    suite,
    branch_rank,
    run_number,
    first_run_id,
    runs,
    followed_number = run_number AS is_alive,
    lineage_runs - run_number AS runs_since
FROM followed
WHERE next_number IS NULL;

-- Which dump of each series is the newest with content: what a module's name means today.
--
-- A row per series. A name that the default branch has means this branch alone: main, else master,
-- else the runs without a branch, else the branch that had the name last. A series that is gone
-- is left out where its name goes on with another series.
CREATE OR REPLACE VIEW internal.newest AS
WITH placed AS (
    SELECT
        *,
        FIRST_VALUE(branch) OVER (
            PARTITION BY workload, module_name, platform
            ORDER BY branch_rank, run_at DESC, run_seq DESC
        ) AS meant_branch,
        MAX(run_number) OVER (PARTITION BY branch, suite, workload, module_name, platform)
            AS meant_number
    FROM internal.series_ends
    -- What `memhouse fit` compiles is a size that was asked about, and not what a name means.
    WHERE run_id NOT IN (SELECT run_id FROM run_labels WHERE key = 'fit')
)

SELECT
    readable_dump_id AS dump_id,
    series_id,
    run_number,
    branch,
    suite,
    branch_rank,
    is_alive,
    runs_since
FROM placed
WHERE branch = meant_branch AND run_number = meant_number AND readable_dump_id IS NOT NULL;

-- What every public view says of a dump.
--
-- A row per dump.
CREATE OR REPLACE VIEW internal.dumped AS
SELECT
    dumps.run_id,
    lineages.run_at,
    lineages.branch,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    COALESCE(newest.is_alive, FALSE) AS is_latest,
    entry_programs.is_entry,
    dumps.dump_id,
    dumps.module_id
FROM dumps
INNER JOIN internal.lineages ON lineages.run_id = dumps.run_id
INNER JOIN internal.entry_programs ON entry_programs.dump_id = dumps.dump_id
LEFT JOIN internal.newest ON newest.dump_id = dumps.dump_id;

CREATE OR REPLACE VIEW history AS
SELECT dumped.*, history.* EXCLUDE (dump_id)
FROM internal.dumped
INNER JOIN internal.history ON history.dump_id = dumped.dump_id;
COMMENT ON VIEW history IS
'Which dump follows which from run to run.

A row per dump. The dumps of a series follow each other in order of their runs, within one branch
and suite, whenever they were ingested.

Key: dump_id.';
COMMENT ON COLUMN history.series_id IS 'the dump''s series, with one dump a run';
COMMENT ON COLUMN history.series_number IS
'1 for the first series of its branch, suite, workload, module name and platform; it never shifts';
COMMENT ON COLUMN history.chain_index IS 'the dump''s place in its series, from 1';
COMMENT ON COLUMN history.previous_dump_id IS 'the previous dump of the series';
COMMENT ON COLUMN history.compared_dump_id IS
'the last previous dump with figures of the same grade; null if this dump has none';
COMMENT ON COLUMN history.level_index IS 'the chain_index since which the program is unchanged';
COMMENT ON COLUMN history.matched_by IS
'how the series was recognised: only, program, signature, skeleton, order, workload renamed, module
renamed or renamed; null for the first dump of a series';
COMMENT ON COLUMN history.missed_runs IS 'runs between this dump and previous_dump_id';
COMMENT ON COLUMN history.is_new IS
'the first dump of a series, but not of the first run of branch and suite';
COMMENT ON COLUMN history.is_last IS 'the last dump of its series';
COMMENT ON COLUMN history.cause IS
'why the dump differs from compared_dump_id; null if it does not, or if that is null';

CREATE OR REPLACE VIEW series AS
SELECT
    series_id,
    workload,
    module_name,
    platform,
    branch,
    suite,
    series_number,
    runs,
    first_run_id,
    run_id AS last_run_id,
    run_at AS last_run_at,
    is_alive,
    runs_since,
    dump_id AS last_dump_id
FROM internal.series_ends;
COMMENT ON VIEW series IS
'Which programs there are, since when, and which are gone.

A row per series: a program that is followed from run to run of one branch and suite, also when it
is renamed. The names are those of its last dump.

Key: series_id.';
COMMENT ON COLUMN series.series_number IS
'1 for the first series of its workload, module name and platform';
COMMENT ON COLUMN series.runs IS 'how many runs have the series';
COMMENT ON COLUMN series.first_run_id IS 'the first run that has it';
COMMENT ON COLUMN series.last_run_id IS 'the newest run that has it';
COMMENT ON COLUMN series.last_run_at IS 'run_at of last_run_id';
COMMENT ON COLUMN series.is_alive IS
'false for a program that is gone: a later run has other programs of its last run, but not this
one';
COMMENT ON COLUMN series.runs_since IS 'how many later runs the branch and suite have';
COMMENT ON COLUMN series.last_dump_id IS 'its dump in last_run_id, see `dumps`';

CREATE OR REPLACE VIEW missing AS
WITH gaps AS (
    SELECT links.*, runs_between.run_id AS missing_run_id
    FROM internal.links
    INNER JOIN internal.lineages AS runs_between
        ON runs_between.branch = links.branch
            AND runs_between.suite = links.suite
            AND runs_between.run_number > links.run_number
            AND runs_between.run_number < COALESCE(links.next_number, links.lineage_runs + 1)
),

pairs AS (
    SELECT DISTINCT run_id, missing_run_id
    FROM gaps
),

-- Another job's run lacks nothing.
related AS (
    SELECT DISTINCT pairs.run_id, pairs.missing_run_id
    FROM pairs
    INNER JOIN internal.links AS had ON had.run_id = pairs.run_id
    INNER JOIN internal.links AS there
        ON there.run_id = pairs.missing_run_id AND there.series_id = had.series_id
)

SELECT
    runs.run_id,
    runs.run_at,
    gaps.branch,
    gaps.suite,
    gaps.workload,
    gaps.module_name,
    gaps.platform,
    gaps.series_id,
    gaps.run_id AS last_run_id,
    gaps.dump_id AS last_dump_id
FROM gaps
INNER JOIN related ON related.run_id = gaps.run_id AND related.missing_run_id = gaps.missing_run_id
INNER JOIN runs ON runs.run_id = gaps.missing_run_id;
COMMENT ON VIEW missing IS
'Which programs are missing in which run.

A row per series and run that lacks it: a run of the branch and suite, after the series began, that
has another program of the last run which had the series. Ten nights without a program are ten rows.

Key: run_id, series_id.';
COMMENT ON COLUMN missing.run_id IS 'the run that lacks the series';
COMMENT ON COLUMN missing.run_at IS 'run_at of that run';
COMMENT ON COLUMN missing.last_run_id IS 'the last run before it that has the series';
COMMENT ON COLUMN missing.last_dump_id IS 'the dump of the series in last_run_id, see `dumps`';

-- The newest dump of each module that a name means today, also of series that are gone.
--
-- A row per module.
CREATE OR REPLACE VIEW internal.latest AS
WITH ranked AS (
    SELECT
        dumps.module_id,
        dumps.workload,
        newest.series_id,
        newest.runs_since,
        newest.is_alive,
        newest.dump_id,
        COUNT(*) OVER (PARTITION BY dumps.module_id) AS series,
        ROW_NUMBER() OVER (
            PARTITION BY dumps.module_id
            ORDER BY
                newest.is_alive DESC,
                newest.branch_rank,
                runs.run_at DESC,
                runs.run_seq DESC,
                dumps.workload,
                dumps.occurrence,
                dumps.dump_id
        ) AS place
    FROM internal.newest
    INNER JOIN dumps ON dumps.dump_id = newest.dump_id
    INNER JOIN runs ON runs.run_id = dumps.run_id
),

named AS (
    SELECT module_id, STRING_AGG(DISTINCT workload, ', ' ORDER BY workload) AS workloads
    FROM ranked
    GROUP BY module_id
)

SELECT
    ranked.* EXCLUDE (workload, place),
    named.workloads,
    modules.program_id
FROM ranked
INNER JOIN named ON named.module_id = ranked.module_id
INNER JOIN modules ON modules.module_id = ranked.module_id
WHERE ranked.place = 1;

CREATE OR REPLACE VIEW latest AS
SELECT
    dumped.*,
    latest.* EXCLUDE (module_id, dump_id, is_alive)
FROM internal.dumped
INNER JOIN internal.latest ON latest.dump_id = dumped.dump_id
WHERE latest.is_alive;
COMMENT ON VIEW latest IS
'The newest of each name: a row a module, for joins that must not multiply.

A row per module: `JOIN latest USING (module_id)` keeps the rows of any table of modules as they
are, while `JOIN dumps USING (module_id)` repeats them for each run and each host. A view says the
same by itself: `WHERE is_latest`. Where several series have the module, hosts for example, the
row is of the first workload, and `series` counts them. A name that the default branch has means
this branch alone: main, else master, else the runs without a branch. A program that is gone has no
row: see `series`.

Key: module_id.';
COMMENT ON COLUMN latest.workload IS 'the dump''s folder within the run; of several the first';
COMMENT ON COLUMN latest.workloads IS
'all workloads that have the module, with a comma between them';
COMMENT ON COLUMN latest.series IS 'the number of series that have the module';
COMMENT ON COLUMN latest.runs_since IS
'the later runs of branch and suite: those of other jobs, that share no program with its run';

CREATE OR REPLACE VIEW dump_files AS
SELECT
    dumps.dump_id,
    CASE
        WHEN STARTS_WITH(file_sets.name, '/') THEN SUBSTR(file_sets.name, 2)
        WHEN dumps.workload = '.' THEN file_sets.name
        ELSE dumps.workload || '/' || file_sets.name
    END AS path,
    file_sets.kind,
    file_sets.bytes,
    file_sets.sha256,
    file_sets.status,
    file_sets.line,
    file_sets.message
FROM dumps
INNER JOIN file_sets ON file_sets.files_id = dumps.files_id;
COMMENT ON VIEW dump_files IS
'The files of each dump, and whether memhouse could read them.

A row per dump and file. Dumps of many hosts and nights share a set of files, which `file_sets`
has once.

Key: dump_id, path.';
COMMENT ON COLUMN dump_files.path IS 'the file, relative to the ingested path';
COMMENT ON COLUMN dump_files.kind IS 'what the file holds, for example live-range';
COMMENT ON COLUMN dump_files.bytes IS 'the uncompressed size; null if the file could not be read';
COMMENT ON COLUMN dump_files.sha256 IS
'SHA-256 of the uncompressed file, in hex; of a HloProto, one that equal messages share';
COMMENT ON COLUMN dump_files.status IS
'ok; failed: nothing was read; partial: a part was read; contradicts: contradicts another file;
missing: the dump lacks the file';
COMMENT ON COLUMN dump_files.line IS 'the line that the message is about, from 1';
COMMENT ON COLUMN dump_files.message IS
'what is wrong, and what to do; of a file that is ok: what was not understood or cannot be known';

CREATE OR REPLACE VIEW runs_summary AS
WITH parts AS (
    SELECT run_id, STRING_AGG(host, ', ' ORDER BY host) AS hosts
    FROM run_parts
    GROUP BY run_id
),

first_seen AS (
    SELECT dumps.module_id, MIN(ordered_runs.place) AS place
    FROM dumps
    INNER JOIN internal.ordered_runs ON ordered_runs.run_id = dumps.run_id
    GROUP BY dumps.module_id
)

SELECT
    runs.run_id,
    runs.run_at,
    runs.run_seq,
    lineages.branch,
    lineages.suite,
    lineages.run_number,
    lineages.previous_run_id,
    COUNT(DISTINCT dumps.workload) AS workloads,
    COUNT(dumps.dump_id) AS dumps,
    COUNT(DISTINCT dumps.module_id) AS modules,
    COUNT(DISTINCT CASE WHEN first_seen.place = ordered_runs.place THEN dumps.module_id END)
        AS new_modules,
    COUNT(CASE WHEN dumps.status <> 'ok' THEN 1 END) AS incomplete,
    COUNT(CASE WHEN dumps.oom THEN 1 END) AS oom,
    MAX(module_memory.peak_bytes) AS largest_peak_bytes,
    runs.ingested_at,
    runs.source,
    COALESCE(MAX(parts.hosts), '') AS hosts
FROM runs
INNER JOIN internal.ordered_runs ON ordered_runs.run_id = runs.run_id
LEFT JOIN parts ON parts.run_id = runs.run_id
LEFT JOIN internal.lineages ON lineages.run_id = runs.run_id
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
    lineages.run_number,
    lineages.previous_run_id,
    runs.ingested_at,
    runs.source;
COMMENT ON VIEW runs_summary IS
'The runs, with what each holds.

A row per run.

Key: run_id.';
COMMENT ON COLUMN runs_summary.run_seq IS
'the order in which runs first entered: it orders runs of equal run_at';
COMMENT ON COLUMN runs_summary.run_number IS
'the run''s place among the runs of branch and suite, from 1; null of a run of logs alone';
COMMENT ON COLUMN runs_summary.previous_run_id IS
'the run before it, of the same branch and suite';
COMMENT ON COLUMN runs_summary.workloads IS 'different dump folders';
COMMENT ON COLUMN runs_summary.dumps IS 'modules as dumped';
COMMENT ON COLUMN runs_summary.modules IS 'different modules among them';
COMMENT ON COLUMN runs_summary.new_modules IS 'modules that no run before it has, of any branch';
COMMENT ON COLUMN runs_summary.incomplete IS 'dumps that are partial or failed';
COMMENT ON COLUMN runs_summary.oom IS 'dumps of programs that XLA found no room for';
COMMENT ON COLUMN runs_summary.largest_peak_bytes IS 'the largest peak in memory space 0';
COMMENT ON COLUMN runs_summary.ingested_at IS 'when the run was first ingested (UTC)';
COMMENT ON COLUMN runs_summary.source IS 'the path that was ingested';
COMMENT ON COLUMN runs_summary.hosts IS
'the hosts whose parts the run holds, with a comma between them; empty without any';
