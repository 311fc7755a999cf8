-- name: listed
-- The rows of `memhouse runs`: the runs with all labels $1, each KEY=VALUE, or KEY of any value.
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
WHERE LIST_HAS_ALL(
        COALESCE(
            (
                SELECT
                    LIST_CONCAT(
                        LIST(run_labels.key), LIST(run_labels.key || '=' || run_labels.value)
                    )
                FROM run_labels
                WHERE run_labels.run_id = runs_summary.run_id
            ),
            []
        ),
        CAST($1 AS VARCHAR[])
    )
ORDER BY run_at, run_seq;

-- name: names
-- The runs' names, the latest first.
SELECT run_id FROM runs ORDER BY run_at DESC, run_seq DESC;

-- name: entered_last
-- The run that entered last, of those with a history: what the journal says of the newest ingest.
-- A run that was written without the journal stands where it first entered; the programs of a
-- `memhouse fit` are nobody's night.
SELECT lineages.run_id
FROM internal.lineages
INNER JOIN runs ON runs.run_id = lineages.run_id
LEFT JOIN journal
    ON journal.run_id = lineages.run_id AND journal.action IN ('ingest', 'replace', 'import')
WHERE lineages.run_id NOT IN (SELECT run_id FROM run_labels WHERE key = 'fit')
ORDER BY journal.entry DESC NULLS LAST, runs.run_seq DESC
LIMIT 1;

-- name: hosts
-- The hosts whose parts run $1 holds; null for a part without a host.
SELECT host FROM run_parts WHERE run_id = $1;

-- name: branches
-- The branches of all runs, the one with the newest run first.
SELECT lineages.branch
FROM internal.lineages
INNER JOIN internal.ordered_runs ON ordered_runs.run_id = lineages.run_id
GROUP BY lineages.branch
ORDER BY MAX(ordered_runs.place) DESC;

-- name: of_branch
-- The runs of branch $1 in their order, with the suite of each.
SELECT
    runs.run_id,
    runs.run_at,
    lineages.suite
FROM internal.lineages
INNER JOIN runs ON runs.run_id = lineages.run_id
INNER JOIN internal.ordered_runs ON ordered_runs.run_id = lineages.run_id
WHERE lineages.branch = $1
ORDER BY ordered_runs.place;
