CREATE SCHEMA IF NOT EXISTS internal;

-- The runs of each branch and suite in order. Names never order runs.
--
-- A row per run; a run of logs alone has no programs to compare, and no row. lineage_runs is the
-- number of runs of its branch and suite. The default branch has the lowest branch_rank of those
-- that there are.
CREATE OR REPLACE VIEW internal.lineages AS
SELECT
    runs.run_id,
    runs.run_at,
    runs.run_seq,
    COALESCE(branches.value, '') AS branch,
    COALESCE(suites.value, '') AS suite,
    CASE COALESCE(branches.value, '')
        WHEN 'main' THEN 1
        WHEN 'master' THEN 2
        WHEN '' THEN 3
        ELSE 4
    END AS branch_rank,
    CAST(ROW_NUMBER() OVER lineage AS INTEGER) AS run_number,
    LAG(runs.run_id) OVER lineage AS previous_run_id,
    COUNT(*) OVER (PARTITION BY COALESCE(branches.value, ''), COALESCE(suites.value, ''))
        AS lineage_runs
FROM runs
LEFT JOIN run_labels AS branches
    ON branches.run_id = runs.run_id AND branches.key = 'branch'
LEFT JOIN run_labels AS suites
    ON suites.run_id = runs.run_id AND suites.key = 'suite'
WHERE
    runs.run_id IN (SELECT dumps.run_id FROM dumps)
    OR runs.run_id NOT IN (SELECT oom_reports.run_id FROM oom_reports)
WINDOW
    lineage AS (
        PARTITION BY COALESCE(branches.value, ''), COALESCE(suites.value, '')
        ORDER BY runs.run_at, runs.run_seq
    );

-- What the pairing of dumps reads: see `pairing.py`.
--
-- A row per dump.
CREATE OR REPLACE VIEW internal.identities AS
SELECT
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.occurrence,
    modules.program_id,
    -- A signature can be long: comparing numbers is cheaper.
    CASE WHEN modules.entry_signature IS NOT NULL THEN HASH(modules.entry_signature) END
        AS signature_id,
    modules.skeleton_id,
    module_memory.total_bytes,
    COALESCE(module_memory.total_bytes, 0) < 1048576 AND COALESCE(modules.schedule_length, 0) < 50
        AS is_tiny
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0;

-- Each dump with its neighbours in its series.
--
-- A row per dump. compared_dump_id: the last dump before it with figures of the same grade, null if
-- this dump has none; before_dump_id: that, else the previous dump.
CREATE OR REPLACE VIEW internal.links AS
WITH with_figures AS (
    SELECT DISTINCT module_id
    FROM module_memory
    WHERE peak_bytes IS NOT NULL
),

placed AS (
    SELECT
        dumps.dump_id,
        dumps.run_id,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        dumps.module_id,
        dumps.status,
        dumps.oom,
        modules.program_id,
        modules.reader_version,
        CASE WHEN with_figures.module_id IS NOT NULL THEN modules.grade END AS grade,
        lineages.run_at,
        lineages.run_seq,
        lineages.branch,
        lineages.suite,
        lineages.branch_rank,
        lineages.run_number,
        lineages.lineage_runs,
        dump_series.series_id,
        dump_series.series_number,
        dump_series.matched_by,
        dump_series.explained_dump_id,
        dump_series.cause
    FROM dump_series
    INNER JOIN dumps ON dumps.dump_id = dump_series.dump_id
    INNER JOIN internal.lineages ON lineages.run_id = dumps.run_id
    LEFT JOIN modules ON modules.module_id = dumps.module_id
    LEFT JOIN with_figures ON with_figures.module_id = dumps.module_id
),

neighbours AS (
    SELECT
        *,
        CAST(ROW_NUMBER() OVER series AS INTEGER) AS chain_index,
        LAG(dump_id) OVER series AS previous_dump_id,
        LAG(run_number) OVER series AS previous_number,
        LEAD(run_number) OVER series AS next_number,
        CASE WHEN grade IS NOT NULL THEN LAG(dump_id) OVER graded END AS compared_dump_id,
        -- The same content, or equal but for names and source lines.
        COALESCE(
            module_id = LAG(module_id) OVER graded OR program_id = LAG(program_id) OVER graded,
            FALSE
        ) AS is_unchanged
    FROM placed
    WINDOW
        series AS (PARTITION BY series_id ORDER BY run_number),
        graded AS (PARTITION BY series_id, grade ORDER BY run_number)
)

SELECT
    *,
    COALESCE(compared_dump_id, previous_dump_id) AS before_dump_id,
    CASE
        WHEN grade IS NOT NULL
            THEN
                MAX(CASE WHEN NOT is_unchanged THEN chain_index END) OVER (
                    PARTITION BY series_id, grade ORDER BY run_number
                )
    END AS level_index
FROM neighbours;

-- Which dump follows which from run to run.
--
-- A row per dump: see the view `history`.
CREATE OR REPLACE VIEW internal.history AS
SELECT
    dump_id,
    series_id,
    series_number,
    chain_index,
    previous_dump_id,
    compared_dump_id,
    level_index,
    CASE WHEN previous_dump_id IS NOT NULL THEN matched_by END AS matched_by,
    run_number - previous_number - 1 AS missed_runs,
    previous_dump_id IS NULL AND run_number > 1 AS is_new,
    next_number IS NULL AS is_last,
    CASE WHEN explained_dump_id = before_dump_id THEN cause END AS cause
FROM internal.links;
-- The runs that lack a series which the run before them has.
--
-- A row per run and series.
CREATE OR REPLACE VIEW internal.gone AS
SELECT
    lineages.run_id,
    links.series_id,
    links.dump_id AS last_dump_id
FROM internal.links
INNER JOIN internal.lineages
    ON lineages.branch = links.branch
        AND lineages.suite = links.suite
        AND lineages.run_number = links.run_number + 1
WHERE links.next_number IS DISTINCT FROM links.run_number + 1;
