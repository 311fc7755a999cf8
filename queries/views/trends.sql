-- How each figure of each module changed from run to run, and what else changed with it.
--
-- A row per run and series: a workload's module of one name, platform and occurrence, in one
-- memory space. Runs are in order of run_at, whenever they were ingested. A row is compared
-- with the series' previous one that has figures, also across runs without it; on the first
-- night, and on one without a peak, there is none, and the changes are null.
--
-- run_id: the run
-- run_at: when the run's programs were compiled (UTC)
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- platform: cpu, gpu or tpu
-- occurrence: 1 for the first module of that name in run and workload
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- status: ok, partial or failed; figures that the dump does not support are null
-- oom: XLA ran out of memory compiling it
-- previous_run_id: the run that the row is compared with
-- missed_runs: runs between these two, in which the series is missing
-- is_last: no later run has the series
-- runs_since: runs after this one, if it is the series' last: 0, or the series has vanished
-- content_changed: the module is another one than before
-- signature_changed: its arguments or results have other shapes or layouts than before
-- compiler_changed: another compiler changelist than before
-- flags_changed: another set of compiler flags than before
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
-- peak_bytes: the most that is occupied at one time
-- peak_bytes_previous: the same in previous_run_id
-- peak_bytes_change: peak_bytes - peak_bytes_previous
-- peak_bytes_change_pct: peak_bytes_change in percent of peak_bytes_previous; null if that is 0
-- peak_bytes_best: the lowest so far, this row included
-- total_bytes: sum of the allocations
-- total_bytes_previous: the same in previous_run_id
-- total_bytes_change: total_bytes - total_bytes_previous
-- total_bytes_change_pct: total_bytes_change in percent of total_bytes_previous; null if that is 0
-- total_bytes_best: the lowest so far, this row included
-- argument_bytes: allocations of parameters
-- argument_bytes_previous: the same in previous_run_id
-- argument_bytes_change: argument_bytes - argument_bytes_previous
-- argument_bytes_change_pct: argument_bytes_change in percent of argument_bytes_previous; null if that is 0
-- argument_bytes_best: the lowest so far, this row included
-- output_bytes: allocations that may live out
-- output_bytes_previous: the same in previous_run_id
-- output_bytes_change: output_bytes - output_bytes_previous
-- output_bytes_change_pct: output_bytes_change in percent of output_bytes_previous; null if that is 0
-- output_bytes_best: the lowest so far, this row included
-- alias_bytes: allocations that are both
-- alias_bytes_previous: the same in previous_run_id
-- alias_bytes_change: alias_bytes - alias_bytes_previous
-- alias_bytes_change_pct: alias_bytes_change in percent of alias_bytes_previous; null if that is 0
-- alias_bytes_best: the lowest so far, this row included
-- constant_bytes: allocations of constants
-- constant_bytes_previous: the same in previous_run_id
-- constant_bytes_change: constant_bytes - constant_bytes_previous
-- constant_bytes_change_pct: constant_bytes_change in percent of constant_bytes_previous; null if that is 0
-- constant_bytes_best: the lowest so far, this row included
-- thread_local_bytes: thread-local allocations
-- thread_local_bytes_previous: the same in previous_run_id
-- thread_local_bytes_change: thread_local_bytes - thread_local_bytes_previous
-- thread_local_bytes_change_pct: thread_local_bytes_change in percent of thread_local_bytes_previous; null if that is 0
-- thread_local_bytes_best: the lowest so far, this row included
-- temp_bytes: the preallocated temp
-- temp_bytes_previous: the same in previous_run_id
-- temp_bytes_change: temp_bytes - temp_bytes_previous
-- temp_bytes_change_pct: temp_bytes_change in percent of temp_bytes_previous; null if that is 0
-- temp_bytes_best: the lowest so far, this row included
-- fragmentation_bytes: what packing wastes
-- fragmentation_bytes_previous: the same in previous_run_id
-- fragmentation_bytes_change: fragmentation_bytes - fragmentation_bytes_previous
-- fragmentation_bytes_change_pct: fragmentation_bytes_change in percent of fragmentation_bytes_previous; null if that is 0
-- fragmentation_bytes_best: the lowest so far, this row included
-- padding_bytes: what tiling adds at the peak
-- padding_bytes_previous: the same in previous_run_id
-- padding_bytes_change: padding_bytes - padding_bytes_previous
-- padding_bytes_change_pct: padding_bytes_change in percent of padding_bytes_previous; null if that is 0
-- padding_bytes_best: the lowest so far, this row included
WITH ordered_runs AS (
    SELECT run_id, run_at, ROW_NUMBER() OVER (ORDER BY run_at, run_id) AS run_number
    FROM runs
),

-- Windows carry numbers only: signatures of 60 KB made a year of 100 series take seconds.
signatures AS (
    SELECT
        module_id,
        CASE
            WHEN entry_signature IS NOT NULL
                THEN MIN(module_id) OVER (PARTITION BY entry_signature)
        END AS signature_id
    FROM modules
),

dumped AS (
    SELECT
        dumps.dump_id,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        dumps.occurrence,
        COALESCE(module_memory.memory_space, 0) AS memory_space,
        dumps.module_id,
        ordered_runs.run_number,
        module_memory.peak_bytes IS NOT NULL AS has_figures
    FROM dumps
    INNER JOIN ordered_runs ON ordered_runs.run_id = dumps.run_id
    LEFT JOIN module_memory ON module_memory.module_id = dumps.module_id
),

series AS (
    SELECT
        workload,
        module_name,
        platform,
        occurrence,
        memory_space,
        MAX(run_number) AS last_run_number,
        ROW_NUMBER() OVER (
            ORDER BY workload, module_name, platform, occurrence, memory_space
        ) AS series_id
    FROM dumped
    GROUP BY workload, module_name, platform, occurrence, memory_space
),

nights AS (
    SELECT
        series.series_id,
        series.last_run_number,
        dumped.memory_space,
        dumped.dump_id,
        dumped.module_id,
        dumped.run_number,
        dumped.has_figures,
        CASE
            WHEN dumped.has_figures THEN LAG(dumped.dump_id) OVER (
                PARTITION BY series.series_id, dumped.has_figures ORDER BY dumped.run_number
            )
        END AS previous_dump_id,
        CASE
            WHEN dumped.has_figures THEN LAG(dumped.module_id) OVER (
                PARTITION BY series.series_id, dumped.has_figures ORDER BY dumped.run_number
            )
        END AS previous_module_id
    FROM dumped
    INNER JOIN series
        ON series.workload = dumped.workload
        AND series.module_name = dumped.module_name
        AND series.platform IS NOT DISTINCT FROM dumped.platform
        AND series.occurrence = dumped.occurrence
        AND series.memory_space = dumped.memory_space
),

-- Only a night with another module than the one before can be the best so far.
steps AS (
    SELECT
        nights.series_id,
        nights.run_number,
        MIN(module_memory.peak_bytes) OVER so_far AS peak_bytes_best,
        MIN(module_memory.total_bytes) OVER so_far AS total_bytes_best,
        MIN(module_memory.argument_bytes) OVER so_far AS argument_bytes_best,
        MIN(module_memory.output_bytes) OVER so_far AS output_bytes_best,
        MIN(module_memory.alias_bytes) OVER so_far AS alias_bytes_best,
        MIN(module_memory.constant_bytes) OVER so_far AS constant_bytes_best,
        MIN(module_memory.thread_local_bytes) OVER so_far AS thread_local_bytes_best,
        MIN(module_memory.temp_bytes) OVER so_far AS temp_bytes_best,
        MIN(module_memory.fragmentation_bytes) OVER so_far AS fragmentation_bytes_best,
        MIN(module_memory.padding_bytes) OVER so_far AS padding_bytes_best
    FROM nights
    INNER JOIN module_memory
        ON module_memory.module_id = nights.module_id
        AND module_memory.memory_space = nights.memory_space
    WHERE
        nights.has_figures
        AND (nights.previous_module_id IS NULL OR nights.previous_module_id <> nights.module_id)
    WINDOW so_far AS (PARTITION BY nights.series_id ORDER BY nights.run_number)
),

compared AS (
    SELECT
        *,
        MAX(
            CASE
                WHEN previous_module_id IS NULL OR previous_module_id <> module_id
                    THEN run_number
            END
        ) OVER (
            PARTITION BY series_id, has_figures
            ORDER BY run_number
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS step_run_number
    FROM nights
)

SELECT
    dumps.run_id,
    ordered_runs.run_at,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.occurrence,
    compared.memory_space,
    dumps.status,
    dumps.oom,
    previous_dump.run_id AS previous_run_id,
    compared.run_number - previous_run.run_number - 1 AS missed_runs,
    compared.run_number = compared.last_run_number AS is_last,
    CASE
        WHEN compared.run_number = compared.last_run_number
            THEN (SELECT COUNT(*) FROM runs) - compared.run_number
    END AS runs_since,
    dumps.module_id <> previous_dump.module_id AS content_changed,
    signatures.signature_id <> previous_signature.signature_id AS signature_changed,
    dumps.compiler <> previous_dump.compiler AS compiler_changed,
    dumps.flags_id <> previous_dump.flags_id AS flags_changed,
    dumps.dump_id,
    dumps.module_id,
    now.peak_bytes,
    previous.peak_bytes AS peak_bytes_previous,
    now.peak_bytes - previous.peak_bytes AS peak_bytes_change,
    100.0 * (now.peak_bytes - previous.peak_bytes) / NULLIF(previous.peak_bytes, 0) AS peak_bytes_change_pct,
    best.peak_bytes_best,
    now.total_bytes,
    previous.total_bytes AS total_bytes_previous,
    now.total_bytes - previous.total_bytes AS total_bytes_change,
    100.0 * (now.total_bytes - previous.total_bytes) / NULLIF(previous.total_bytes, 0) AS total_bytes_change_pct,
    best.total_bytes_best,
    now.argument_bytes,
    previous.argument_bytes AS argument_bytes_previous,
    now.argument_bytes - previous.argument_bytes AS argument_bytes_change,
    100.0 * (now.argument_bytes - previous.argument_bytes) / NULLIF(previous.argument_bytes, 0) AS argument_bytes_change_pct,
    best.argument_bytes_best,
    now.output_bytes,
    previous.output_bytes AS output_bytes_previous,
    now.output_bytes - previous.output_bytes AS output_bytes_change,
    100.0 * (now.output_bytes - previous.output_bytes) / NULLIF(previous.output_bytes, 0) AS output_bytes_change_pct,
    best.output_bytes_best,
    now.alias_bytes,
    previous.alias_bytes AS alias_bytes_previous,
    now.alias_bytes - previous.alias_bytes AS alias_bytes_change,
    100.0 * (now.alias_bytes - previous.alias_bytes) / NULLIF(previous.alias_bytes, 0) AS alias_bytes_change_pct,
    best.alias_bytes_best,
    now.constant_bytes,
    previous.constant_bytes AS constant_bytes_previous,
    now.constant_bytes - previous.constant_bytes AS constant_bytes_change,
    100.0 * (now.constant_bytes - previous.constant_bytes) / NULLIF(previous.constant_bytes, 0) AS constant_bytes_change_pct,
    best.constant_bytes_best,
    now.thread_local_bytes,
    previous.thread_local_bytes AS thread_local_bytes_previous,
    now.thread_local_bytes - previous.thread_local_bytes AS thread_local_bytes_change,
    100.0 * (now.thread_local_bytes - previous.thread_local_bytes) / NULLIF(previous.thread_local_bytes, 0) AS thread_local_bytes_change_pct,
    best.thread_local_bytes_best,
    now.temp_bytes,
    previous.temp_bytes AS temp_bytes_previous,
    now.temp_bytes - previous.temp_bytes AS temp_bytes_change,
    100.0 * (now.temp_bytes - previous.temp_bytes) / NULLIF(previous.temp_bytes, 0) AS temp_bytes_change_pct,
    best.temp_bytes_best,
    now.fragmentation_bytes,
    previous.fragmentation_bytes AS fragmentation_bytes_previous,
    now.fragmentation_bytes - previous.fragmentation_bytes AS fragmentation_bytes_change,
    100.0 * (now.fragmentation_bytes - previous.fragmentation_bytes) / NULLIF(previous.fragmentation_bytes, 0) AS fragmentation_bytes_change_pct,
    best.fragmentation_bytes_best,
    now.padding_bytes,
    previous.padding_bytes AS padding_bytes_previous,
    now.padding_bytes - previous.padding_bytes AS padding_bytes_change,
    100.0 * (now.padding_bytes - previous.padding_bytes) / NULLIF(previous.padding_bytes, 0) AS padding_bytes_change_pct,
    best.padding_bytes_best
FROM compared
INNER JOIN dumps ON dumps.dump_id = compared.dump_id
INNER JOIN ordered_runs ON ordered_runs.run_number = compared.run_number
LEFT JOIN signatures ON signatures.module_id = compared.module_id
LEFT JOIN module_memory AS now
    ON now.module_id = compared.module_id AND now.memory_space = compared.memory_space
LEFT JOIN dumps AS previous_dump ON previous_dump.dump_id = compared.previous_dump_id
LEFT JOIN ordered_runs AS previous_run ON previous_run.run_id = previous_dump.run_id
LEFT JOIN signatures AS previous_signature
    ON previous_signature.module_id = compared.previous_module_id
LEFT JOIN module_memory AS previous
    ON previous.module_id = compared.previous_module_id
    AND previous.memory_space = compared.memory_space
LEFT JOIN steps AS best
    ON best.series_id = compared.series_id
    AND best.run_number = compared.step_run_number
    AND compared.has_figures
