-- The branches of run $1's suite: of each the newest run before run $1 that has programs, null if
-- there is none, and how many such runs there are.
WITH ordered AS (
    SELECT
        lineages.run_id,
        lineages.branch,
        lineages.suite,
        _ordered_runs.place,
        lineages.run_id IN (SELECT run_id FROM dumps) AS has_programs
    FROM lineages
    INNER JOIN _ordered_runs ON _ordered_runs.run_id = lineages.run_id
),

placed AS (
    SELECT
        ordered.run_id,
        ordered.branch,
        ordered.place,
        ordered.run_id = $1 AS is_judged,
        ordered.has_programs AND ordered.place < judged.place AS is_before
    FROM ordered
    INNER JOIN ordered AS judged ON judged.run_id = $1 AND judged.suite = ordered.suite
)

SELECT
    branch,
    MAX_BY(run_id, place) FILTER (is_before) AS newest_run_id,
    COUNT(*) FILTER (is_before) AS runs_before,
    BOOL_OR(is_judged) AS is_judged
FROM placed
GROUP BY branch
ORDER BY runs_before DESC, MAX(place) DESC
