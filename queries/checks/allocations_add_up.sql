-- The allocations' sizes add up to XLA's `Total bytes used`.
--
-- A usage report alone rounds them.
SELECT
    modules.module_id,
    'allocations add up to ' || COALESCE(SUM(allocations.size_bytes), 0)
    || ' bytes, XLA reports ' || modules.reported_total_bytes AS breach
FROM modules
INNER JOIN allocations ON allocations.module_id = modules.module_id
WHERE modules.origin IS DISTINCT FROM 'estimated'
GROUP BY modules.module_id, modules.reported_total_bytes
HAVING SUM(allocations.size_bytes) <> modules.reported_total_bytes
