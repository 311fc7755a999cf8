-- The gathered arrays of module $1 that memory space $2 has at the peak, and when each is read:
-- a row a value and use, the largest first. A TPU gathers in fusions, whose results are known only
-- by their operation's name.
SELECT
    held.value_id,
    held.size_bytes,
    held.start_time,
    held.end_time,
    held.instruction,
    CASE WHEN held.role = 'gathered weight' THEN held.op_name END AS argument,
    CASE
        WHEN held.source_file IS NOT NULL THEN held.source_file || ':' || held.source_line
    END AS source,
    instructions.schedule_time AS use_time
FROM buffers AS held
INNER JOIN uses ON uses.module_id = held.module_id AND uses.value_id = held.value_id
INNER JOIN instructions
    ON instructions.module_id = uses.module_id
        AND instructions.instruction_id = uses.instruction_id
WHERE
    held.module_id = $1
    AND held.memory_space = $2
    AND (
        held.role = 'gathered weight'
        OR (held.role = 'activation' AND held.op_name LIKE '%/all\_gather' ESCAPE '\')
    )
    AND held.category = 'temp'
    AND held.is_live_at_peak
    AND instructions.schedule_time IS NOT NULL
ORDER BY held.size_bytes DESC, held.value_id, use_time
