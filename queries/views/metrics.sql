-- What each module needs in each memory space, metric by metric.
--
-- A row per module, memory space and metric. `peaks` has the same values, a column a metric.
--
-- module_id: the module, see `modules`
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- metric: for example peak_bytes, see `module_memory`
-- value_bytes: the metric's value; null if the dump does not support it
SELECT module_id, memory_space, 'peak_bytes' AS metric, peak_bytes AS value_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'total_bytes', total_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'argument_bytes', argument_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'output_bytes', output_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'alias_bytes', alias_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'constant_bytes', constant_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'thread_local_bytes', thread_local_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'temp_bytes', temp_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'fragmentation_bytes', fragmentation_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'padding_bytes', padding_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'live_bound_bytes', live_bound_bytes
FROM module_memory
UNION ALL
SELECT module_id, memory_space, 'packing_bytes', packing_bytes
FROM module_memory
