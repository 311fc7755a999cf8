-- The runs with their label $1, empty without one, in the order of all runs.
SELECT
    _ordered_runs.run_id,
    COALESCE(run_labels.value, '') AS label
FROM _ordered_runs
LEFT JOIN run_labels ON run_labels.run_id = _ordered_runs.run_id AND run_labels.key = $1
ORDER BY _ordered_runs.place
