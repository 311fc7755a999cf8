-- The parts of a main memory's peak add up to it.
SELECT
    module_memory.module_id,
    'the parts of the peak add up to ' || SUM(peak_parts.counted_bytes)
    || ' bytes, the peak has ' || module_memory.peak_bytes AS breach
FROM module_memory
INNER JOIN internal.peak_parts ON peak_parts.module_id = module_memory.module_id
WHERE module_memory.memory_space = 0
GROUP BY module_memory.module_id, module_memory.peak_bytes
HAVING SUM(peak_parts.counted_bytes) <> module_memory.peak_bytes
