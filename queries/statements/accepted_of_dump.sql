-- The changes that were accepted of dump $1 in memory space $2.
SELECT metric, accepted_bytes, reason, accepted_at
FROM accepted_changes
WHERE dump_id = $1 AND memory_space = $2
ORDER BY metric
