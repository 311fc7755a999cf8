-- The branches of all runs, the one with the newest run first.
SELECT lineages.branch
FROM lineages
INNER JOIN _ordered_runs ON _ordered_runs.run_id = lineages.run_id
GROUP BY lineages.branch
ORDER BY MAX(_ordered_runs.place) DESC
