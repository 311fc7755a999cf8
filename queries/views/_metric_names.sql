-- The names of the metrics, which also name columns of `module_memory`.
--
-- A row per metric of METRICS in `schema/tables.py`.
--
-- metric: its name
SELECT 'peak_bytes' AS metric
UNION ALL SELECT 'total_bytes'
UNION ALL SELECT 'argument_bytes'
UNION ALL SELECT 'output_bytes'
UNION ALL SELECT 'alias_bytes'
UNION ALL SELECT 'constant_bytes'
UNION ALL SELECT 'thread_local_bytes'
UNION ALL SELECT 'temp_bytes'
UNION ALL SELECT 'fragmentation_bytes'
UNION ALL SELECT 'padding_bytes'
UNION ALL SELECT 'live_bound_bytes'
UNION ALL SELECT 'packing_bytes'
