-- The memory spaces of module $1, with the memory of the device that dump $2 is for.
SELECT
    module_memory.memory_space,
    memory_spaces.space_name,
    module_memory.peak_bytes,
    module_memory.peak_time,
    module_memory.total_bytes - module_memory.thread_local_bytes AS allocated_bytes,
    CASE WHEN module_memory.memory_space = 0 THEN dumps.device_memory_bytes END
        AS device_memory_bytes,
    modules.schedule_length,
    modules.origin,
    dumps.platform
FROM module_memory
INNER JOIN modules ON modules.module_id = module_memory.module_id
INNER JOIN dumps ON dumps.dump_id = $2
LEFT JOIN memory_spaces
    ON memory_spaces.module_id = module_memory.module_id
        AND memory_spaces.memory_space = module_memory.memory_space
WHERE module_memory.module_id = $1
ORDER BY module_memory.memory_space
