-- Delete what is gone in the runs $1, and in runs that are no longer stored.
DELETE FROM gone
WHERE run_id NOT IN (SELECT run_id FROM runs WHERE NOT LIST_CONTAINS($1, run_id))
