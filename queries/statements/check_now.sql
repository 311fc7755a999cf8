-- The programs of run $1 with their figures in memory space $2; value_bytes is that of metric $3.
--
-- A program without memory in the space has a row only in space 0. Estimates are held against
-- estimates only.
SELECT
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    history.series_id,
    history.series_number,
    history.compared_dump_id,
    history.previous_dump_id,
    history.is_new,
    history.cause,
    dumps.status,
    dumps.oom,
    _entry_programs.is_entry,
    dumps.module_id,
    modules.program_id,
    modules.origin,
    modules.grade,
    dumps.device_memory_bytes,
    CASE
        WHEN $2 = 0
            THEN module_memory.total_bytes - COALESCE(module_memory.thread_local_bytes, 0)
    END AS reserved_bytes,
    metrics.value_bytes,
    module_memory.peak_bytes,
    module_memory.argument_bytes,
    module_memory.alias_bytes,
    module_memory.padding_bytes
FROM dumps
INNER JOIN history ON history.dump_id = dumps.dump_id
INNER JOIN _entry_programs ON _entry_programs.dump_id = dumps.dump_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = $2
LEFT JOIN _module_metrics AS metrics
    ON metrics.module_id = dumps.module_id
        AND metrics.memory_space = $2
        AND metrics.metric = $3
WHERE dumps.run_id = $1 AND ($2 = 0 OR module_memory.module_id IS NOT NULL)
ORDER BY dumps.workload, dumps.module_name, history.series_number, dumps.dump_id
