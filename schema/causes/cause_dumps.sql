-- What causes need to know of the dumps $1: a row per dump, with figures of its main memory.
SELECT
    dumps.dump_id,
    dumps.run_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.compiler,
    dumps.device_kind,
    dumps.flags_id,
    dumps.module_id,
    dumps.status,
    dumps.oom,
    COALESCE(
        dumps.files_id IN (
            SELECT file_sets.files_id
            FROM file_sets
            WHERE file_sets.kind = 'tpu-comp-env' AND file_sets.status = 'ok'
        ),
        FALSE
    ) AS has_call_options,
    modules.program_id,
    modules.skeleton_id,
    modules.entry_signature,
    modules.reported_total_bytes,
    modules.schedule_length,
    modules.reader_version,
    modules.num_partitions,
    modules.flops,
    modules.unknown_loops,
    modules.origin,
    modules.grade,
    module_memory.total_bytes,
    module_memory.peak_bytes,
    module_memory.fragmentation_bytes,
    module_memory.live_bound_bytes
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
WHERE dumps.dump_id IN (SELECT UNNEST($1))
