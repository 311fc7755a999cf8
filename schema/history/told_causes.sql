-- The causes of dumps of the runs $1 that are still true: neither the dump nor what it is held
-- against is of a run of $2.
SELECT
    before.dump_id AS before_dump_id,
    history.dump_id,
    history.cause
FROM history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
INNER JOIN dumps AS before
    ON before.dump_id = COALESCE(history.compared_dump_id, history.previous_dump_id)
WHERE dumps.run_id IN (SELECT UNNEST($1))
    AND dumps.run_id NOT IN (SELECT UNNEST($2))
    AND before.run_id NOT IN (SELECT UNNEST($2))
