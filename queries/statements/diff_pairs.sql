-- The dumps of run $1 beside those of run $2, by series; of workload $3 where it is given.
WITH a AS (
    SELECT dumps.*, history.series_id
    FROM dumps
    INNER JOIN history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id = $1 AND dumps.workload = COALESCE($3, dumps.workload)
),

b AS (
    SELECT dumps.*, history.series_id
    FROM dumps
    INNER JOIN history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id = $2 AND dumps.workload = COALESCE($3, dumps.workload)
)

SELECT a.dump_id AS a_dump_id, b.dump_id AS b_dump_id
FROM a
FULL JOIN b ON b.series_id = a.series_id
ORDER BY COALESCE(b.workload, a.workload), COALESCE(b.module_number, a.module_number)
