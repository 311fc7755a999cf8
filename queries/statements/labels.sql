-- name: of_runs
-- The labels of the runs $1, in this order.
SELECT
    run_id AS run,
    key,
    value
FROM run_labels
WHERE run_id IN (SELECT UNNEST($1))
ORDER BY ARRAY_POSITION($1, run_id), key;

-- name: of_key
-- The runs with their label $1, empty without one, in the order of all runs.
SELECT
    ordered_runs.run_id,
    COALESCE(run_labels.value, '') AS label
FROM internal.ordered_runs
LEFT JOIN run_labels ON run_labels.run_id = ordered_runs.run_id AND run_labels.key = $1
ORDER BY ordered_runs.place;

-- name: branches
-- How many runs have the label branch, and how many do not.
SELECT
    COUNT(run_labels.run_id) AS labelled,
    COUNT(*) - COUNT(run_labels.run_id) AS unlabelled
FROM runs
LEFT JOIN run_labels
    ON run_labels.run_id = runs.run_id
        AND run_labels.key = 'branch';
