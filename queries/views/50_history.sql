CREATE OR REPLACE VIEW internal.trends AS
WITH placed AS (
    SELECT
        runs.run_id,
        runs.run_at,
        lineages.branch,
        lineages.suite,
        lineages.run_number,
        MAX(lineages.run_number) OVER (PARTITION BY lineages.branch, lineages.suite) AS runs
    FROM runs
    INNER JOIN internal.lineages ON lineages.run_id = runs.run_id
),

-- A signature can be long: comparing numbers is cheaper.
programs AS (
    SELECT
        module_id,
        program_id,
        origin,
        grade,
        CASE
            WHEN entry_signature IS NOT NULL
                THEN MIN(module_id) OVER (PARTITION BY entry_signature)
        END AS signature_id
    FROM modules
),

compared AS (
    SELECT
        dumps.run_id,
        placed.run_at,
        placed.run_number,
        placed.branch,
        placed.suite,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        dumps.occurrence,
        entry_programs.is_entry,
        history.series_id,
        history.series_number,
        history.is_new,
        history.level_index,
        previous.run_id AS previous_run_id,
        placed.run_number - previously_placed.run_number - 1 AS missed_runs,
        history.is_last,
        CASE WHEN history.is_last THEN placed.runs - placed.run_number END AS runs_since,
        history.cause,
        dumps.status,
        dumps.oom,
        CASE
            WHEN programs.program_id IS NULL OR previous_programs.program_id IS NULL
                THEN dumps.module_id <> previous.module_id
            ELSE programs.program_id <> previous_programs.program_id
        END AS content_changed,
        programs.signature_id <> previous_programs.signature_id AS signature_changed,
        dumps.compiler <> previous.compiler AS compiler_changed,
        dumps.flags_id <> previous.flags_id AS flags_changed,
        dumps.dump_id,
        dumps.module_id,
        programs.program_id,
        programs.origin,
        programs.grade,
        previous.module_id AS previous_module_id
    FROM internal.history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN placed ON placed.run_id = dumps.run_id
    INNER JOIN internal.entry_programs ON entry_programs.dump_id = dumps.dump_id
    LEFT JOIN programs ON programs.module_id = dumps.module_id
    LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
    LEFT JOIN placed AS previously_placed ON previously_placed.run_id = previous.run_id
    LEFT JOIN programs AS previous_programs ON previous_programs.module_id = previous.module_id
),

-- Only the first dump of a level can be better than all dumps before it.
levels AS (
    SELECT
        history.series_id,
        history.level_index,
        metrics.memory_space,
        metrics.metric,
        CASE
            WHEN metric_names.is_better_higher THEN MAX(metrics.value) OVER so_far
            ELSE MIN(metrics.value) OVER so_far
        END AS best_value
    FROM internal.history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN modules ON modules.module_id = dumps.module_id
    INNER JOIN internal.metrics AS metrics ON metrics.module_id = dumps.module_id
    INNER JOIN internal.metric_names ON metric_names.metric = metrics.metric
    WHERE history.chain_index = history.level_index
    WINDOW
        so_far AS (
            PARTITION BY
                history.series_id,
                modules.grade,
                metrics.memory_space,
                metrics.metric
            ORDER BY history.level_index
        )
)

SELECT
    compared.run_id,
    compared.run_at,
    compared.run_number,
    compared.branch,
    compared.suite,
    compared.workload,
    compared.module_name,
    compared.platform,
    compared.occurrence,
    compared.is_entry,
    compared.series_id,
    compared.series_number,
    compared.is_new,
    COALESCE(metrics.memory_space, 0) AS memory_space,
    COALESCE(metrics.space, CASE WHEN compared.platform = 'cpu' THEN 'host' ELSE 'hbm' END)
        AS space,
    metric_names.metric,
    metric_names.unit,
    metrics.value,
    previous.value AS previous_value,
    metrics.value - previous.value AS change,
    (metrics.value - previous.value) / NULLIF(previous.value, 0) AS change_ratio,
    levels.best_value,
    compared.previous_run_id,
    compared.missed_runs,
    compared.is_last,
    compared.runs_since,
    compared.cause,
    compared.status,
    compared.oom,
    compared.content_changed,
    compared.signature_changed,
    compared.compiler_changed,
    compared.flags_changed,
    compared.dump_id,
    compared.module_id,
    compared.program_id,
    compared.origin,
    compared.grade
FROM compared
CROSS JOIN internal.metric_names
LEFT JOIN internal.metrics AS metrics
    ON metrics.module_id = compared.module_id
        AND metrics.metric = metric_names.metric
LEFT JOIN internal.metrics AS previous
    ON previous.module_id = compared.previous_module_id
        AND previous.memory_space = metrics.memory_space
        AND previous.metric = metric_names.metric
LEFT JOIN levels
    ON levels.series_id = compared.series_id
        AND levels.level_index = compared.level_index
        AND levels.memory_space = metrics.memory_space
        AND levels.metric = metric_names.metric
-- No figure of orders, which are worked out where `ingest --orders` asks for them, is no row.
WHERE metrics.module_id IS NULL OR metrics.value IS NOT NULL;

CREATE OR REPLACE VIEW trends_by_space AS
SELECT
    dumped.*,
    trends.* EXCLUDE (
        run_id,
        run_at,
        branch,
        suite,
        workload,
        module_name,
        platform,
        is_entry,
        dump_id,
        module_id
    )
FROM internal.dumped
INNER JOIN internal.trends ON trends.dump_id = dumped.dump_id;
COMMENT ON VIEW trends_by_space IS
'How each metric of each module changed from run to run, and what else changed with it.

A row per dump, memory space and metric. The dumps of a series follow each other in order of their
runs, within one branch and suite, whenever they were ingested: see `history`. A
row is compared with the last dump before it that has figures. The first dump of a series, and a
dump without a peak, is compared with nothing, and the changes are null. A failed dump has a row
for each metric in memory space 0, without values. A series that a run lacks has no row there: see
`missing`.

Key: dump_id, memory_space, metric.';
COMMENT ON COLUMN trends_by_space.run_number IS
'the run''s place among the runs of branch and suite, from 1';
COMMENT ON COLUMN trends_by_space.series_number IS
'1 for the first series of its workload, module name and platform';
COMMENT ON COLUMN trends_by_space.is_new IS
'the series begins here, and not with the first run of its branch and suite';
COMMENT ON COLUMN trends_by_space.missed_runs IS
'runs of the branch and suite between these two, without figures of the series';
COMMENT ON COLUMN trends_by_space.is_last IS 'no later run of the branch and suite has the series';
COMMENT ON COLUMN trends_by_space.runs_since IS
'their runs after this one, if it is the series'' last: 0, or the series is gone';
COMMENT ON COLUMN trends_by_space.content_changed IS
'the program is another one than before; names and source lines do not count';

CREATE OR REPLACE VIEW trends AS
SELECT * EXCLUDE (memory_space)
FROM trends_by_space
WHERE memory_space = 0;
COMMENT ON VIEW trends IS
'How each metric of each program changed from run to run, and what else changed with it.

A row per dump and metric, of the main memory; other memory spaces are in `trends_by_space`. The
dumps of a series follow each other in order of their runs, within one branch and suite. A row is
compared with the last dump before it that has figures.

Key: dump_id, metric.';
COMMENT ON COLUMN trends.run_number IS
'the run''s place among the runs of branch and suite, from 1';
COMMENT ON COLUMN trends.series_number IS
'1 for the first series of its workload, module name and platform';
COMMENT ON COLUMN trends.is_new IS
'the series begins here, and not with the first run of its branch and suite';
COMMENT ON COLUMN trends.missed_runs IS
'runs of the branch and suite between these two, without figures of the series';
COMMENT ON COLUMN trends.is_last IS 'no later run of the branch and suite has the series';
COMMENT ON COLUMN trends.runs_since IS
'their runs after this one, if it is the series'' last: 0, or the series is gone';
COMMENT ON COLUMN trends.content_changed IS
'the program is another one than before; names and source lines do not count';

CREATE OR REPLACE VIEW internal.regressions AS
SELECT
    run_id,
    run_at,
    branch,
    suite,
    workload,
    module_name,
    platform,
    occurrence,
    series_id,
    memory_space,
    space,
    metric,
    unit,
    value,
    previous_value,
    change,
    change_ratio,
    best_value,
    previous_run_id,
    cause,
    oom,
    signature_changed,
    compiler_changed,
    flags_changed,
    dump_id,
    module_id
FROM internal.trends
WHERE
    content_changed
    AND change > 0.01 * previous_value
    AND metric IN (
        SELECT metric FROM internal.metric_names WHERE regresses AND NOT is_better_higher
    );

CREATE OR REPLACE VIEW regressions AS
SELECT
    dumped.*,
    regressions.* EXCLUDE (
        run_id,
        run_at,
        branch,
        suite,
        workload,
        module_name,
        platform,
        dump_id,
        module_id,
        memory_space
    )
FROM internal.dumped
INNER JOIN internal.regressions ON regressions.dump_id = dumped.dump_id
WHERE regressions.memory_space = 0;
COMMENT ON VIEW regressions IS
'In which run which metric grew: the rows of `trends` that grew by more than one percent.

A row per run, series and metric, of the main memory. For another threshold, filter `trends`, or use
`memhouse check`. More aliased, constant or thread-local bytes are not a regression, nor is more
work: the metrics total_bytes and flops are in `trends` alone.

Key: dump_id, metric.';

CREATE OR REPLACE VIEW internal.scope_trends AS
WITH sides AS (
    SELECT TRUE AS is_previous
    UNION ALL SELECT FALSE
),

-- Each content and the content that it is compared with: many dumps have the same two.
contents AS (
    SELECT DISTINCT
        dumps.module_id,
        previous.module_id AS previous_module_id
    FROM internal.history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
),

spaces AS (
    SELECT
        contents.module_id,
        contents.previous_module_id,
        sides.is_previous,
        module_memory.module_id AS shown_module_id,
        module_memory.memory_space,
        module_memory.space
    FROM contents
    CROSS JOIN sides
    INNER JOIN module_memory
        ON module_memory.module_id
            = CASE
                WHEN sides.is_previous THEN contents.previous_module_id ELSE contents.module_id
            END
),

-- The counts of `buffers` at the peak, here for each pair of contents, so that a filter on
-- module_id comes before the window.
counted AS (
    SELECT
        spaces.module_id,
        spaces.previous_module_id,
        spaces.is_previous,
        spaces.shown_module_id,
        spaces.memory_space,
        spaces.space,
        buffer_extents.value_id,
        GREATEST(
            buffer_extents.offset_bytes + buffer_extents.size_bytes - GREATEST(
                buffer_extents.offset_bytes,
                COALESCE(
                    MAX(buffer_extents.offset_bytes + buffer_extents.size_bytes) OVER (
                        PARTITION BY
                            spaces.module_id,
                            spaces.previous_module_id,
                            spaces.is_previous,
                            buffer_extents.allocation_index
                        ORDER BY
                            buffer_extents.offset_bytes,
                            buffer_extents.size_bytes DESC,
                            buffer_extents.value_id
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ),
                    0
                )
            ),
            0
        ) AS counted_bytes
    FROM spaces
    INNER JOIN internal.buffer_extents
        ON buffer_extents.module_id = spaces.shown_module_id
            AND buffer_extents.memory_space = spaces.memory_space
            AND buffer_extents.is_live_at_peak
),

changes AS (
    SELECT
        counted.module_id,
        counted.previous_module_id,
        counted.memory_space,
        COALESCE(scopes.scope, '') AS scope,
        "values".pass,
        ANY_VALUE(counted.space) AS space,
        CAST(SUM(CASE WHEN counted.is_previous THEN 0 ELSE counted.counted_bytes END) AS BIGINT)
            AS counted_bytes,
        CAST(SUM(CASE WHEN counted.is_previous THEN counted.counted_bytes ELSE 0 END) AS BIGINT)
            AS previous_bytes
    FROM counted
    -- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
    -- larger side.
    LEFT JOIN "values"
        ON "values".module_id = counted.shown_module_id
            AND "values".value_id = counted.value_id
    LEFT JOIN instructions
        ON instructions.module_id = counted.shown_module_id
            AND instructions.instruction_id
            = COALESCE("values".origin_instruction_id, "values".instruction_id)
    LEFT JOIN scopes
        ON scopes.module_id = counted.shown_module_id
            AND scopes.scope_id = instructions.scope_id
    GROUP BY 1, 2, 3, 4, 5
)

SELECT
    dumps.run_id,
    runs.run_at,
    lineages.branch,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    history.series_id,
    changes.memory_space,
    changes.space,
    changes.scope,
    changes.pass,
    changes.counted_bytes,
    CASE WHEN history.compared_dump_id IS NOT NULL THEN changes.previous_bytes END
        AS previous_bytes,
    CASE
        WHEN history.compared_dump_id IS NOT NULL
            THEN changes.counted_bytes - changes.previous_bytes
    END AS change_bytes,
    previous.run_id AS previous_run_id,
    dumps.dump_id,
    dumps.module_id
FROM internal.history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN internal.lineages ON lineages.run_id = dumps.run_id
LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
INNER JOIN changes
    ON changes.module_id = dumps.module_id
        AND COALESCE(changes.previous_module_id, 0) = COALESCE(previous.module_id, 0);

CREATE OR REPLACE VIEW scope_trends AS
SELECT
    dumped.*,
    scope_trends.* EXCLUDE (
        run_id,
        run_at,
        branch,
        suite,
        workload,
        module_name,
        platform,
        dump_id,
        module_id,
        memory_space
    )
FROM internal.dumped
INNER JOIN internal.scope_trends ON scope_trends.dump_id = dumped.dump_id
WHERE scope_trends.memory_space = 0;
COMMENT ON VIEW scope_trends IS
'How each scope''s share of the peak changed from run to run.

A row per dump, whole scope and pass that the dump or the one before it has, of the main memory. The
rows of a dump add up to its peak, and their changes to the peak''s change. A dump is compared
with the dump that `trends` compares it with.

Key: dump_id, scope, pass.';
COMMENT ON COLUMN scope_trends.scope IS
'the scope, all its steps; empty for arguments and for what is in no scope';
COMMENT ON COLUMN scope_trends.counted_bytes IS 'what the scope adds to the peak; 0 if it is gone';
COMMENT ON COLUMN scope_trends.previous_bytes IS
'the same in previous_run_id; 0 if the scope is new, null if there is no such run';
