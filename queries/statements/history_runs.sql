-- The runs of branch $1 in their order, with the suite of each.
SELECT
    runs.run_id,
    runs.run_at,
    lineages.suite
FROM lineages
INNER JOIN runs ON runs.run_id = lineages.run_id
INNER JOIN _ordered_runs ON _ordered_runs.run_id = lineages.run_id
WHERE lineages.branch = $1
ORDER BY _ordered_runs.place
