-- The lineages whose chains must be followed anew, and from which run on: where `lineages` has
-- another run than `new_lineages`, and from the runs $1 on. `kept_runs` are the runs before it.
WITH differing AS (
    SELECT
        COALESCE(new.branch, old.branch) AS branch,
        COALESCE(new.suite, old.suite) AS suite,
        COALESCE(new.run_number, old.run_number) AS run_number
    FROM new_lineages AS new
    FULL JOIN lineages AS old
        ON old.branch = new.branch
            AND old.suite = new.suite
            AND old.run_number = new.run_number
    WHERE old.run_id IS DISTINCT FROM new.run_id OR new.run_id IN (SELECT UNNEST($1))
)

SELECT
    branch,
    suite,
    MIN(run_number) AS run_number
FROM differing
GROUP BY branch, suite
ORDER BY branch, suite
