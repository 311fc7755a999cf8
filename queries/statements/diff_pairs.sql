-- The dumps of run $1 beside those of run $2, by series; of workload $3 where it is given.
WITH a AS (
    SELECT * FROM dumps WHERE run_id = $1 AND workload = COALESCE($3, workload)
),

b AS (
    SELECT * FROM dumps WHERE run_id = $2 AND workload = COALESCE($3, workload)
)

SELECT a.dump_id AS a_dump_id, b.dump_id AS b_dump_id
FROM a
FULL JOIN b
    ON b.workload = a.workload
    AND b.module_name = a.module_name
    AND COALESCE(b.platform, '') = COALESCE(a.platform, '')
    AND b.occurrence = a.occurrence
ORDER BY COALESCE(b.workload, a.workload), COALESCE(b.module_number, a.module_number)
