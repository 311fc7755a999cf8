-- How many runs have the label branch, and how many do not.
SELECT
    COUNT(run_labels.run_id) AS labelled,
    COUNT(*) - COUNT(run_labels.run_id) AS unlabelled
FROM runs
LEFT JOIN run_labels
    ON run_labels.run_id = runs.run_id
        AND run_labels.key = 'branch'
