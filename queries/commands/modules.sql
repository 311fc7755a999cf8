-- The rows of `memhouse modules`: a run and a workload, both optional, choose.
SELECT
    dumps.run_id,
    dumps.workload,
    dumps.module_name,
    dumps.occurrence,
    dumps.platform,
    dumps.status,
    dumps.oom,
    modules.schedule_length AS instructions,
    modules.reported_total_bytes AS total_bytes,
    module_memory.peak_bytes,
    dumps.module_id
FROM dumps
INNER JOIN runs ON runs.run_id = dumps.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
WHERE dumps.run_id = COALESCE($1, dumps.run_id)
    AND dumps.workload = COALESCE($2, dumps.workload)
ORDER BY runs.run_at, dumps.run_id, dumps.workload, dumps.module_number, dumps.module_name
