-- The dumps of run $1, or the dump $2, of modules that did not fit, with their figures in HBM.
SELECT
    dumps.dump_id,
    dumps.run_id,
    dumps.workload,
    dumps.module_name,
    dumps.module_id,
    dumps.device_kind,
    dumps.device_memory_bytes,
    module_memory.total_bytes,
    module_memory.argument_bytes,
    module_memory.output_bytes - module_memory.alias_bytes AS output_bytes,
    module_memory.temp_bytes,
    module_memory.peak_bytes,
    module_memory.padding_bytes,
    module_memory.packing_bytes
FROM dumps
LEFT JOIN module_memory
    ON dumps.module_id = module_memory.module_id AND module_memory.memory_space = 0
WHERE CASE WHEN $2 IS NULL THEN dumps.run_id = $1 AND dumps.oom ELSE dumps.dump_id = $2 END
ORDER BY dumps.workload, dumps.module_number
