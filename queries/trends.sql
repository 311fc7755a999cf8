-- How each figure of each module changed from run to run, and what else changed with it.
--
-- A row per run and series: a workload's module of one name, platform and occurrence, in one
-- memory space. Runs are in order of run_at, whenever they were ingested. A row is compared
-- with the series' previous one that has figures, also across runs without it; on the first
-- night there is none, and the changes are null.
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

dumped AS (
    SELECT
        dumps.run_id,
        ordered_runs.run_at,
        ordered_runs.run_number,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        dumps.occurrence,
        COALESCE(module_memory.memory_space, 0) AS memory_space,
        dumps.status,
        dumps.oom,
        dumps.dump_id,
        dumps.module_id,
        dumps.compiler,
        dumps.flags_id,
        modules.entry_signature,
        module_memory.peak_bytes IS NOT NULL AS has_figures,
        module_memory.peak_bytes,
        module_memory.total_bytes,
        module_memory.argument_bytes,
        module_memory.output_bytes,
        module_memory.alias_bytes,
        module_memory.constant_bytes,
        module_memory.thread_local_bytes,
        module_memory.temp_bytes,
        module_memory.fragmentation_bytes,
        module_memory.padding_bytes
    FROM dumps
    INNER JOIN ordered_runs ON ordered_runs.run_id = dumps.run_id
    LEFT JOIN modules ON modules.module_id = dumps.module_id
    LEFT JOIN module_memory ON module_memory.module_id = dumps.module_id
),

compared AS (
    SELECT
        *,
        LAG(run_id) OVER series AS previous_run_id,
        LAG(run_number) OVER series AS previous_run_number,
        LAG(module_id) OVER series AS previous_module_id,
        LAG(entry_signature) OVER series AS previous_signature,
        LAG(compiler) OVER series AS previous_compiler,
        LAG(flags_id) OVER series AS previous_flags_id,
        LEAD(run_id) OVER nights IS NULL AS is_last,
        LAG(peak_bytes) OVER series AS peak_bytes_previous,
        MIN(peak_bytes) OVER series AS peak_bytes_best,
        LAG(total_bytes) OVER series AS total_bytes_previous,
        MIN(total_bytes) OVER series AS total_bytes_best,
        LAG(argument_bytes) OVER series AS argument_bytes_previous,
        MIN(argument_bytes) OVER series AS argument_bytes_best,
        LAG(output_bytes) OVER series AS output_bytes_previous,
        MIN(output_bytes) OVER series AS output_bytes_best,
        LAG(alias_bytes) OVER series AS alias_bytes_previous,
        MIN(alias_bytes) OVER series AS alias_bytes_best,
        LAG(constant_bytes) OVER series AS constant_bytes_previous,
        MIN(constant_bytes) OVER series AS constant_bytes_best,
        LAG(thread_local_bytes) OVER series AS thread_local_bytes_previous,
        MIN(thread_local_bytes) OVER series AS thread_local_bytes_best,
        LAG(temp_bytes) OVER series AS temp_bytes_previous,
        MIN(temp_bytes) OVER series AS temp_bytes_best,
        LAG(fragmentation_bytes) OVER series AS fragmentation_bytes_previous,
        MIN(fragmentation_bytes) OVER series AS fragmentation_bytes_best,
        LAG(padding_bytes) OVER series AS padding_bytes_previous,
        MIN(padding_bytes) OVER series AS padding_bytes_best
    FROM dumped
    WINDOW
        nights AS (
            PARTITION BY workload, module_name, platform, occurrence, memory_space
            ORDER BY run_number
        ),
        series AS (
            PARTITION BY
                workload, module_name, platform, occurrence, memory_space, has_figures
            ORDER BY run_number
        )
)

SELECT
    run_id,
    run_at,
    workload,
    module_name,
    platform,
    occurrence,
    memory_space,
    status,
    oom,
    CASE WHEN has_figures THEN previous_run_id END AS previous_run_id,
    CASE WHEN has_figures THEN run_number - previous_run_number - 1 END AS missed_runs,
    is_last,
    CASE WHEN is_last THEN (SELECT COUNT(*) FROM runs) - run_number END AS runs_since,
    module_id <> previous_module_id AS content_changed,
    entry_signature <> previous_signature AS signature_changed,
    compiler <> previous_compiler AS compiler_changed,
    flags_id <> previous_flags_id AS flags_changed,
    dump_id,
    module_id,
    peak_bytes,
    peak_bytes_previous,
    peak_bytes - peak_bytes_previous AS peak_bytes_change,
    100.0 * (peak_bytes - peak_bytes_previous) / NULLIF(peak_bytes_previous, 0) AS peak_bytes_change_pct,
    peak_bytes_best,
    total_bytes,
    total_bytes_previous,
    total_bytes - total_bytes_previous AS total_bytes_change,
    100.0 * (total_bytes - total_bytes_previous) / NULLIF(total_bytes_previous, 0) AS total_bytes_change_pct,
    total_bytes_best,
    argument_bytes,
    argument_bytes_previous,
    argument_bytes - argument_bytes_previous AS argument_bytes_change,
    100.0 * (argument_bytes - argument_bytes_previous) / NULLIF(argument_bytes_previous, 0) AS argument_bytes_change_pct,
    argument_bytes_best,
    output_bytes,
    output_bytes_previous,
    output_bytes - output_bytes_previous AS output_bytes_change,
    100.0 * (output_bytes - output_bytes_previous) / NULLIF(output_bytes_previous, 0) AS output_bytes_change_pct,
    output_bytes_best,
    alias_bytes,
    alias_bytes_previous,
    alias_bytes - alias_bytes_previous AS alias_bytes_change,
    100.0 * (alias_bytes - alias_bytes_previous) / NULLIF(alias_bytes_previous, 0) AS alias_bytes_change_pct,
    alias_bytes_best,
    constant_bytes,
    constant_bytes_previous,
    constant_bytes - constant_bytes_previous AS constant_bytes_change,
    100.0 * (constant_bytes - constant_bytes_previous) / NULLIF(constant_bytes_previous, 0) AS constant_bytes_change_pct,
    constant_bytes_best,
    thread_local_bytes,
    thread_local_bytes_previous,
    thread_local_bytes - thread_local_bytes_previous AS thread_local_bytes_change,
    100.0 * (thread_local_bytes - thread_local_bytes_previous) / NULLIF(thread_local_bytes_previous, 0) AS thread_local_bytes_change_pct,
    thread_local_bytes_best,
    temp_bytes,
    temp_bytes_previous,
    temp_bytes - temp_bytes_previous AS temp_bytes_change,
    100.0 * (temp_bytes - temp_bytes_previous) / NULLIF(temp_bytes_previous, 0) AS temp_bytes_change_pct,
    temp_bytes_best,
    fragmentation_bytes,
    fragmentation_bytes_previous,
    fragmentation_bytes - fragmentation_bytes_previous AS fragmentation_bytes_change,
    100.0 * (fragmentation_bytes - fragmentation_bytes_previous) / NULLIF(fragmentation_bytes_previous, 0) AS fragmentation_bytes_change_pct,
    fragmentation_bytes_best,
    padding_bytes,
    padding_bytes_previous,
    padding_bytes - padding_bytes_previous AS padding_bytes_change,
    100.0 * (padding_bytes - padding_bytes_previous) / NULLIF(padding_bytes_previous, 0) AS padding_bytes_change_pct,
    padding_bytes_best
FROM compared
