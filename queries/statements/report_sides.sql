-- The peaks of the dumps $1 in main memory, for the report of a diff: a row per dump with figures.
SELECT
    dumps.dump_id,
    dumps.platform,
    modules.origin,
    module_memory.peak_bytes
FROM dumps
INNER JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
WHERE dumps.dump_id IN (SELECT UNNEST($1))
ORDER BY dumps.dump_id
