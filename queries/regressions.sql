-- On which night which figure grew: the steps of `trends` that grew by more than one percent.
--
-- A row per run, series and figure, the largest growth of a run tells most. For another
-- threshold, filter `trends` itself, or use `memhouse check`.
--
-- run_id: the run
-- run_at: when the run's programs were compiled (UTC)
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- platform: cpu, gpu or tpu
-- occurrence: 1 for the first module of that name in run and workload
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- figure: which figure grew
-- previous_run_id: the run that it is compared with
-- previous_bytes: the figure then
-- now_bytes: the figure now
-- change_bytes: now_bytes - previous_bytes
-- change_pct: change_bytes in percent of previous_bytes; null if that is 0
-- best_bytes: the lowest the figure has been
-- oom: XLA ran out of memory compiling it
-- signature_changed: the arguments or results have other shapes or layouts than before
-- compiler_changed: another compiler changelist than before
-- flags_changed: another set of compiler flags than before
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
SELECT *
FROM (
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'peak_bytes' AS figure, previous_run_id, peak_bytes_previous AS previous_bytes, peak_bytes AS now_bytes,
        peak_bytes_change AS change_bytes, peak_bytes_change_pct AS change_pct, peak_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'total_bytes' AS figure, previous_run_id, total_bytes_previous AS previous_bytes, total_bytes AS now_bytes,
        total_bytes_change AS change_bytes, total_bytes_change_pct AS change_pct, total_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'argument_bytes' AS figure, previous_run_id, argument_bytes_previous AS previous_bytes, argument_bytes AS now_bytes,
        argument_bytes_change AS change_bytes, argument_bytes_change_pct AS change_pct, argument_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'output_bytes' AS figure, previous_run_id, output_bytes_previous AS previous_bytes, output_bytes AS now_bytes,
        output_bytes_change AS change_bytes, output_bytes_change_pct AS change_pct, output_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'temp_bytes' AS figure, previous_run_id, temp_bytes_previous AS previous_bytes, temp_bytes AS now_bytes,
        temp_bytes_change AS change_bytes, temp_bytes_change_pct AS change_pct, temp_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'fragmentation_bytes' AS figure, previous_run_id, fragmentation_bytes_previous AS previous_bytes, fragmentation_bytes AS now_bytes,
        fragmentation_bytes_change AS change_bytes, fragmentation_bytes_change_pct AS change_pct, fragmentation_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
    UNION ALL
    SELECT
        run_id, run_at, workload, module_name, platform, occurrence, memory_space,
        'padding_bytes' AS figure, previous_run_id, padding_bytes_previous AS previous_bytes, padding_bytes AS now_bytes,
        padding_bytes_change AS change_bytes, padding_bytes_change_pct AS change_pct, padding_bytes_best AS best_bytes,
        oom, signature_changed, compiler_changed, flags_changed, dump_id, module_id
    FROM trends
) AS steps
WHERE change_bytes > 0.01 * previous_bytes
