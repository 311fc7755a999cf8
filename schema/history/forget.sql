-- Delete the links of the runs $1, and of dumps that are no longer stored.
DELETE FROM history
WHERE dump_id NOT IN (SELECT dump_id FROM dumps WHERE NOT LIST_CONTAINS($1, run_id))
