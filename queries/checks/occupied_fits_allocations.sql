-- The occupied bytes of a memory space never exceed its allocations.
SELECT
    occupancy.module_id,
    'memory space ' || occupancy.memory_space || ': ' || MAX(occupancy.occupied_bytes)
    || ' bytes are occupied of ' || module_memory.reserved_bytes AS breach
FROM occupancy
INNER JOIN module_memory
    ON module_memory.module_id = occupancy.module_id
        AND module_memory.memory_space = occupancy.memory_space
GROUP BY occupancy.module_id, occupancy.memory_space, module_memory.reserved_bytes
HAVING MAX(occupancy.occupied_bytes) > module_memory.reserved_bytes
