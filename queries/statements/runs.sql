-- The rows of `memhouse runs`.
SELECT
    run_id AS run,
    run_at,
    NULLIF(branch, '') AS branch,
    NULLIF(hosts, '') AS hosts,
    dumps,
    new_modules,
    incomplete,
    oom,
    largest_peak_bytes,
    workloads,
    modules,
    source,
    ingested_at
FROM runs_summary
ORDER BY run_at, run_seq
