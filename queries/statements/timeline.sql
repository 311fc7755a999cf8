-- The rows of `memhouse timeline MODULE`: module $1, memory space $2.
SELECT
    start_time,
    end_time,
    occupied_bytes,
    live_bytes,
    instruction,
    op_name,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM TIMELINE_OF($1)
WHERE memory_space = $2
ORDER BY start_time
