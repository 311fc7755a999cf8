-- The allocations of module $1 in memory space $2.
SELECT
    allocation_index,
    size_bytes,
    is_temp
FROM allocations
WHERE module_id = $1 AND memory_space = $2 AND NOT is_thread_local
ORDER BY allocation_index
