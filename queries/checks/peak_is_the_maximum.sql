-- A peak is the largest occupied_bytes, and peak_time the first time that has them.
WITH highest AS (
    SELECT module_id, memory_space, MAX(occupied_bytes) AS peak_bytes
    FROM occupancy
    GROUP BY module_id, memory_space
),

first_reached AS (
    SELECT
        highest.module_id,
        highest.memory_space,
        highest.peak_bytes,
        MIN(occupancy.start_time) AS peak_time
    FROM highest
    INNER JOIN occupancy
        ON occupancy.module_id = highest.module_id
            AND occupancy.memory_space = highest.memory_space
            AND occupancy.occupied_bytes = highest.peak_bytes
    GROUP BY highest.module_id, highest.memory_space, highest.peak_bytes
)

SELECT
    first_reached.module_id,
    'memory space ' || first_reached.memory_space || ': the peak is '
    || first_reached.peak_bytes || ' bytes at ' || first_reached.peak_time AS breach
FROM first_reached
INNER JOIN module_memory
    ON module_memory.module_id = first_reached.module_id
        AND module_memory.memory_space = first_reached.memory_space
WHERE module_memory.peak_bytes IS DISTINCT FROM first_reached.peak_bytes
    OR module_memory.peak_time IS DISTINCT FROM first_reached.peak_time
