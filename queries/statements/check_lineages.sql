-- The branches of run $1's suite: the newest run of each before run $1, null if there is none.
WITH ordered AS (
    SELECT
        lineages.run_id,
        lineages.branch,
        lineages.suite,
        _ordered_runs.place
    FROM lineages
    INNER JOIN _ordered_runs ON _ordered_runs.run_id = lineages.run_id
)

SELECT
    ordered.branch,
    MAX_BY(ordered.run_id, ordered.place) FILTER (ordered.place < judged.place) AS newest_run_id,
    BOOL_OR(ordered.run_id = $1) AS is_judged
FROM ordered
INNER JOIN ordered AS judged ON judged.run_id = $1 AND judged.suite = ordered.suite
GROUP BY ordered.branch
ORDER BY ordered.branch
