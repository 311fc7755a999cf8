-- The last dumps of the series that are gone in run $1.
SELECT last_dump_id FROM gone WHERE run_id = $1
