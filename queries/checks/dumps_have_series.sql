-- Every dump is of one series, which has one dump a run, and its cause is against the dump before.
SELECT
    dumps.module_id,
    'the dump ' || dumps.dump_id || ' has no series' AS breach
FROM dumps
LEFT JOIN internal.links ON links.dump_id = dumps.dump_id
WHERE links.dump_id IS NULL

UNION ALL

SELECT
    MIN(module_id) AS module_id,
    'the series ' || series_id || ' has ' || COUNT(*) || ' dumps in the run ' || run_id AS breach
FROM internal.links
GROUP BY series_id, run_id
HAVING COUNT(*) > 1

UNION ALL

SELECT
    module_id,
    'the cause of the dump ' || dump_id || ' is against the dump ' || explained_dump_id
    || ', and the dump before it is ' || COALESCE(CAST(before_dump_id AS VARCHAR), 'none')
        AS breach
FROM internal.links
WHERE explained_dump_id <> before_dump_id
    OR (explained_dump_id IS NOT NULL AND before_dump_id IS NULL)
