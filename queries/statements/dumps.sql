-- name: names
-- The names of the dumps $1: run, workload and module.
SELECT dump_id, run_id || '/' || workload || '/' || module_name AS name
FROM dumps
WHERE dump_id IN (SELECT UNNEST($1));

-- name: counts
-- How many dumps there are, and how many are of the workload $1.
SELECT COUNT(*) AS all_dumps, COUNT(*) FILTER (WHERE workload = $1) AS of_workload
FROM dumps;
