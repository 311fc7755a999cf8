-- The dumps of run $2 that nothing of run $1 follows: both are runs of one history.
SELECT dumps.dump_id
FROM dumps
INNER JOIN history ON history.dump_id = dumps.dump_id
WHERE dumps.run_id = $2
    AND history.series_id NOT IN (
        SELECT followed.series_id
        FROM history AS followed
        INNER JOIN dumps AS now ON now.dump_id = followed.dump_id
        WHERE now.run_id = $1
    )
ORDER BY dumps.dump_id
