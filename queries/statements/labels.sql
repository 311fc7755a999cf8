-- The labels of the runs $1, in this order.
SELECT
    run_id AS run,
    key,
    value
FROM run_labels
WHERE run_id IN (SELECT UNNEST($1))
ORDER BY ARRAY_POSITION($1, run_id), key
