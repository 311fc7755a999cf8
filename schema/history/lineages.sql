-- The rows of `lineages`: the runs of each branch and suite in order. Names never order runs.
-- A run of logs alone has no programs to compare.
WITH labelled AS (
    SELECT
        runs.run_id,
        runs.run_at,
        runs.run_seq,
        COALESCE(branches.value, '') AS branch,
        COALESCE(suites.value, '') AS suite
    FROM runs
    LEFT JOIN run_labels AS branches
        ON branches.run_id = runs.run_id AND branches.key = 'branch'
    LEFT JOIN run_labels AS suites
        ON suites.run_id = runs.run_id AND suites.key = 'suite'
    WHERE
        runs.run_id IN (SELECT dumps.run_id FROM dumps)
        OR runs.run_id NOT IN (SELECT oom_reports.run_id FROM oom_reports)
)

SELECT
    run_id,
    branch,
    suite,
    CAST(ROW_NUMBER() OVER lineage AS INTEGER) AS run_number,
    LAG(run_id) OVER lineage AS previous_run_id
FROM labelled
WINDOW lineage AS (PARTITION BY branch, suite ORDER BY run_at, run_seq)
