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
-- best_bytes: the lowest the figure has been
-- oom: XLA ran out of memory compiling it
-- signature_changed: the arguments or results have other shapes or layouts than before
-- compiler_changed: another compiler changelist than before
-- flags_changed: another set of compiler flags than before
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
-- change_bytes: now_bytes - previous_bytes
-- change_pct: change_bytes in percent of previous_bytes; null if that is 0
SELECT
    *,
    now_bytes - previous_bytes AS change_bytes,
    100.0 * (now_bytes - previous_bytes) / NULLIF(previous_bytes, 0) AS change_pct
FROM (
    SELECT
        trends.run_id,
        trends.run_at,
        trends.workload,
        trends.module_name,
        trends.platform,
        trends.occurrence,
        trends.memory_space,
        figures.figure,
        trends.previous_run_id,
        CASE figures.figure
            WHEN 'peak_bytes' THEN trends.peak_bytes_previous
            WHEN 'total_bytes' THEN trends.total_bytes_previous
            WHEN 'argument_bytes' THEN trends.argument_bytes_previous
            WHEN 'output_bytes' THEN trends.output_bytes_previous
            WHEN 'temp_bytes' THEN trends.temp_bytes_previous
            WHEN 'fragmentation_bytes' THEN trends.fragmentation_bytes_previous
            WHEN 'padding_bytes' THEN trends.padding_bytes_previous
        END AS previous_bytes,
        CASE figures.figure
            WHEN 'peak_bytes' THEN trends.peak_bytes
            WHEN 'total_bytes' THEN trends.total_bytes
            WHEN 'argument_bytes' THEN trends.argument_bytes
            WHEN 'output_bytes' THEN trends.output_bytes
            WHEN 'temp_bytes' THEN trends.temp_bytes
            WHEN 'fragmentation_bytes' THEN trends.fragmentation_bytes
            WHEN 'padding_bytes' THEN trends.padding_bytes
        END AS now_bytes,
        CASE figures.figure
            WHEN 'peak_bytes' THEN trends.peak_bytes_best
            WHEN 'total_bytes' THEN trends.total_bytes_best
            WHEN 'argument_bytes' THEN trends.argument_bytes_best
            WHEN 'output_bytes' THEN trends.output_bytes_best
            WHEN 'temp_bytes' THEN trends.temp_bytes_best
            WHEN 'fragmentation_bytes' THEN trends.fragmentation_bytes_best
            WHEN 'padding_bytes' THEN trends.padding_bytes_best
        END AS best_bytes,
        trends.oom,
        trends.signature_changed,
        trends.compiler_changed,
        trends.flags_changed,
        trends.dump_id,
        trends.module_id
    FROM trends
    CROSS JOIN (
        SELECT 'peak_bytes' AS figure
        UNION ALL SELECT 'total_bytes'
        UNION ALL SELECT 'argument_bytes'
        UNION ALL SELECT 'output_bytes'
        UNION ALL SELECT 'temp_bytes'
        UNION ALL SELECT 'fragmentation_bytes'
        UNION ALL SELECT 'padding_bytes'
    ) AS figures
    -- A night on which nothing changed has no step.
    WHERE trends.content_changed
) AS steps
WHERE now_bytes - previous_bytes > 0.01 * previous_bytes
