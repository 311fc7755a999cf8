-- The allocations' sizes add up to XLA's `Total bytes used`.
SELECT
    modules.module_id,
    'allocations add up to ' || COALESCE(SUM(allocations.size_bytes), 0)
    || ' bytes, XLA reports ' || modules.reported_total_bytes AS breach
FROM modules
INNER JOIN allocations ON allocations.module_id = modules.module_id
GROUP BY modules.module_id, modules.reported_total_bytes
HAVING SUM(allocations.size_bytes) <> modules.reported_total_bytes
