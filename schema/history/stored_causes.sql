-- The causes of dumps of the runs $1 that are still true, with the rows of `causes` in order:
-- neither the dump nor what it is held against is of a run of $2.
WITH terms AS (
    SELECT
        dump_id,
        LIST(
            {
                'kind': kind,
                'term': term,
                'change_bytes': change_bytes,
                'source': source,
                'role': role
            }
            ORDER BY rank
        ) AS terms
    FROM causes
    GROUP BY dump_id
)

SELECT
    before.dump_id AS a_dump_id,
    history.dump_id AS b_dump_id,
    history.cause,
    terms.terms
FROM history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
INNER JOIN dumps AS before
    ON before.dump_id = COALESCE(history.compared_dump_id, history.previous_dump_id)
LEFT JOIN terms ON terms.dump_id = history.dump_id
WHERE dumps.run_id IN (SELECT UNNEST($1))
    AND dumps.run_id NOT IN (SELECT UNNEST($2))
    AND before.run_id NOT IN (SELECT UNNEST($2))
