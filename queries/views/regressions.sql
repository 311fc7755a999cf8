-- In which run which metric grew: the rows of `trends` that grew by more than one percent.
--
-- A row per run, series, memory space and metric. For another threshold, filter `trends`, or
-- use `memhouse check`. More aliased, constant or thread-local bytes are not a regression.
--
-- run_id: the run
-- run_at: when the run's programs were compiled (UTC)
-- branch: the run's branch, empty without one
-- suite: the run's suite, empty without one
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- platform: cpu, gpu or tpu
-- occurrence: 1 for the first module of its name and platform in run and workload
-- series_id: the series, see `history`
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- metric: which metric grew
-- previous_run_id: the run that the row is compared with
-- previous_bytes: the value then
-- now_bytes: the value now
-- best_bytes: the best value so far
-- cause: why the program differs from the one in previous_run_id, in a line
-- oom: XLA ran out of memory compiling the module
-- signature_changed: the arguments or results have other shapes or layouts than before
-- compiler_changed: another compiler changelist than before
-- flags_changed: another set of compiler flags than before
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
-- change_bytes: now_bytes - previous_bytes
-- change_pct: change_bytes in percent of previous_bytes; null if that is 0
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
    metric,
    previous_run_id,
    previous_bytes,
    value_bytes AS now_bytes,
    best_bytes,
    cause,
    oom,
    signature_changed,
    compiler_changed,
    flags_changed,
    dump_id,
    module_id,
    change_bytes,
    change_pct
FROM trends
WHERE
    content_changed
    AND change_bytes > 0.01 * previous_bytes
    AND metric NOT IN ('alias_bytes', 'constant_bytes', 'thread_local_bytes')
