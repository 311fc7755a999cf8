-- name: reports
-- The out-of-memory reports of run $1, those that stopped the compiler first.
SELECT *
FROM oom_reports
WHERE run_id = $1
ORDER BY kind = 'runtime', dump_id IS NULL, path, line;

-- name: buffers
-- The buffers that the out-of-memory reports of run $1 list, the largest first.
SELECT *
FROM oom_buffers
WHERE run_id = $1
ORDER BY oom_id, rank;

-- name: dumps
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
    module_memory.fragmentation_bytes
FROM dumps
LEFT JOIN module_memory
    ON dumps.module_id = module_memory.module_id AND module_memory.memory_space = 0
WHERE CASE WHEN $2 IS NULL THEN dumps.run_id = $1 AND dumps.oom ELSE dumps.dump_id = $2 END
ORDER BY dumps.workload, dumps.module_number;

-- name: runs
-- The runs in which memory ran out, the latest first.
SELECT run_id
FROM runs
WHERE
    run_id IN (SELECT oom_reports.run_id FROM oom_reports)
    OR run_id IN (SELECT dumps.run_id FROM dumps WHERE dumps.oom)
ORDER BY run_at DESC, run_seq DESC;

-- name: padded
-- Of the buffers of module $1 in the device's main memory at the peak, by their sizes, the one to
-- which tiles add most.
SELECT
    rank,
    shape,
    size_bytes,
    padding_bytes,
    size_bytes - padding_bytes AS unpadded_bytes
FROM (
    SELECT
        shape,
        size_bytes,
        padding_bytes,
        ROW_NUMBER() OVER (ORDER BY size_bytes DESC, value_id) AS rank
    FROM internal.buffers
    WHERE module_id = $1 AND memory_space = 0 AND is_live_at_peak
) AS ranked
WHERE padding_bytes > 0
ORDER BY padding_bytes DESC, rank
LIMIT 1;

-- name: kernel
-- The $3 largest arrays that the kernel $2 of module $1 keeps in VMEM.
SELECT
    kernel_parts.size_bytes,
    kernel_parts.buffers,
    kernel_parts.kind AS source,
    kernel_parts.shape
FROM kernel_parts
INNER JOIN instructions
    ON instructions.module_id = kernel_parts.module_id
        AND instructions.instruction_id = kernel_parts.instruction_id
WHERE
    kernel_parts.module_id = $1
    AND instructions.instruction = $2
    AND kernel_parts.space = 'vmem'
    AND kernel_parts.size_bytes > 0
ORDER BY kernel_parts.size_bytes DESC, kernel_parts.part
LIMIT $3;
