-- How many dumps there are, and how many are of the workload $1.
SELECT COUNT(*) AS all_dumps, COUNT(*) FILTER (WHERE workload = $1) AS of_workload
FROM dumps
