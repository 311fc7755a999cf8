-- The names of the dumps $1: run, workload and module.
SELECT dump_id, run_id || '/' || workload || '/' || module_name AS name
FROM dumps
WHERE dump_id IN (SELECT UNNEST($1))
