-- The peak of module $1 in memory space $2.
SELECT
    modules.schedule_length,
    module_memory.peak_bytes,
    module_memory.peak_time
FROM module_memory
INNER JOIN modules ON modules.module_id = module_memory.module_id
WHERE module_memory.module_id = $1 AND module_memory.memory_space = $2
