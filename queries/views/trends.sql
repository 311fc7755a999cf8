-- How each metric of each module changed from run to run, and what else changed with it.
--
-- A row per dump, memory space and metric. The dumps of a series follow each other in order of
-- run_at, whenever they were ingested: see `history`. A row is compared with the last dump
-- before it that has figures. The first dump of a series, and a dump without a peak, is
-- compared with nothing, and the changes are null. A failed dump has a row for each metric in
-- memory space 0, without values.
--
-- run_id: the run
-- run_at: when the run's programs were compiled (UTC)
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- platform: cpu, gpu or tpu
-- occurrence: 1 for the first module of its name and platform in run and workload
-- series_id: the series, see `history`
-- series_number: 1 for the first series of its workload, module name and platform
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- metric: for example peak_bytes, see `module_memory`
-- value_bytes: the metric's value; null if the dump does not support it
-- previous_bytes: the value in previous_run_id
-- change_bytes: value_bytes - previous_bytes
-- change_pct: change_bytes in percent of previous_bytes; null if that is 0
-- best_bytes: the lowest value so far, this row included
-- previous_run_id: the run that the row is compared with
-- missed_runs: runs between these two, in which the series has no figures
-- is_last: no later run has the series
-- runs_since: runs after this one, if it is the series' last: 0, or the series has vanished
-- status: ok, partial or failed, see `dumps`
-- oom: XLA ran out of memory compiling the module
-- content_changed: the module is another one than before
-- signature_changed: the arguments or results have other shapes or layouts than before
-- compiler_changed: another compiler changelist than before
-- flags_changed: another set of compiler flags than before
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
-- origin: estimated if the values come from HLO text alone, see `modules`
WITH numbered_runs AS (
    SELECT
        run_id,
        run_at,
        ROW_NUMBER() OVER (ORDER BY run_at, run_id) AS run_number,
        COUNT(*) OVER () AS runs
    FROM runs
),

-- A signature can be long: comparing numbers is cheaper.
signatures AS (
    SELECT module_id, MIN(module_id) OVER (PARTITION BY entry_signature) AS signature_id
    FROM modules
    WHERE entry_signature IS NOT NULL
),

compared AS (
    SELECT
        dumps.run_id,
        numbered_runs.run_at,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        dumps.occurrence,
        history.series_id,
        history.series_number,
        history.level_index,
        previous.run_id AS previous_run_id,
        numbered_runs.run_number - previous_runs.run_number - 1 AS missed_runs,
        history.is_last,
        CASE WHEN history.is_last THEN numbered_runs.runs - numbered_runs.run_number END
            AS runs_since,
        dumps.status,
        dumps.oom,
        dumps.module_id <> previous.module_id AS content_changed,
        signatures.signature_id <> previous_signatures.signature_id AS signature_changed,
        dumps.compiler <> previous.compiler AS compiler_changed,
        dumps.flags_id <> previous.flags_id AS flags_changed,
        dumps.dump_id,
        dumps.module_id,
        modules.origin,
        previous.module_id AS previous_module_id
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN numbered_runs ON numbered_runs.run_id = dumps.run_id
    LEFT JOIN modules ON modules.module_id = dumps.module_id
    LEFT JOIN signatures ON signatures.module_id = dumps.module_id
    LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
    LEFT JOIN numbered_runs AS previous_runs ON previous_runs.run_id = previous.run_id
    LEFT JOIN signatures AS previous_signatures
        ON previous_signatures.module_id = previous.module_id
),

-- Only the first dump of a level can be lower than all dumps before it.
levels AS (
    SELECT
        history.series_id,
        history.level_index,
        metrics.memory_space,
        metrics.metric,
        MIN(metrics.value_bytes) OVER (
            PARTITION BY
                history.series_id,
                modules.origin = 'estimated',
                metrics.memory_space,
                metrics.metric
            ORDER BY history.level_index
        ) AS best_bytes
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN modules ON modules.module_id = dumps.module_id
    INNER JOIN metrics ON metrics.module_id = dumps.module_id
    WHERE history.chain_index = history.level_index
)

SELECT
    compared.run_id,
    compared.run_at,
    compared.workload,
    compared.module_name,
    compared.platform,
    compared.occurrence,
    compared.series_id,
    compared.series_number,
    COALESCE(metrics.memory_space, 0) AS memory_space,
    _metric_names.metric,
    metrics.value_bytes,
    previous.value_bytes AS previous_bytes,
    metrics.value_bytes - previous.value_bytes AS change_bytes,
    100.0 * (metrics.value_bytes - previous.value_bytes) / NULLIF(previous.value_bytes, 0)
        AS change_pct,
    levels.best_bytes,
    compared.previous_run_id,
    compared.missed_runs,
    compared.is_last,
    compared.runs_since,
    compared.status,
    compared.oom,
    compared.content_changed,
    compared.signature_changed,
    compared.compiler_changed,
    compared.flags_changed,
    compared.dump_id,
    compared.module_id,
    compared.origin
FROM compared
CROSS JOIN _metric_names
LEFT JOIN metrics
    ON metrics.module_id = compared.module_id
        AND metrics.metric = _metric_names.metric
LEFT JOIN metrics AS previous
    ON previous.module_id = compared.previous_module_id
        AND previous.memory_space = metrics.memory_space
        AND previous.metric = _metric_names.metric
LEFT JOIN levels
    ON levels.series_id = compared.series_id
        AND levels.level_index = compared.level_index
        AND levels.memory_space = metrics.memory_space
        AND levels.metric = _metric_names.metric
