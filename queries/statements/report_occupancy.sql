-- How full memory space $2 of module $1 is, from one change to the next.
SELECT start_time, occupied_bytes
FROM occupancy
WHERE module_id = $1 AND memory_space = $2
ORDER BY start_time
