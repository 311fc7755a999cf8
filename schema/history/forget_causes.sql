-- Delete the causes of dumps of the runs $1, and of dumps that are no longer stored.
DELETE FROM causes
WHERE dump_id NOT IN (SELECT dump_id FROM dumps WHERE NOT LIST_CONTAINS($1, run_id))
