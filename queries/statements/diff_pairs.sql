-- The dumps of run $1 beside those of run $2, by series; of workload $3 if it is not null.
WITH dumped AS (
    SELECT
        dumps.run_id,
        dumps.dump_id,
        dumps.workload,
        dumps.module_number,
        history.series_id
    FROM dumps
    INNER JOIN history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id IN ($1, $2) AND dumps.workload = COALESCE($3, dumps.workload)
),

a AS (SELECT * FROM dumped WHERE run_id = $1),

b AS (SELECT * FROM dumped WHERE run_id = $2)

SELECT a.dump_id AS a_dump_id, b.dump_id AS b_dump_id
FROM a
FULL JOIN b ON b.series_id = a.series_id
ORDER BY
    COALESCE(b.workload, a.workload),
    COALESCE(b.module_number, a.module_number),
    COALESCE(b.dump_id, a.dump_id)
