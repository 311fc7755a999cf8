-- The series that workload $1 ever had.
SELECT DISTINCT history.series_id
FROM history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
WHERE dumps.workload = $1
