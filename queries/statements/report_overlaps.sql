-- Which temp values of module $1 in memory space $2 share bytes with one before them in address
-- order while both are live. A row per such pair.
WITH temps AS (
    SELECT
        allocation_index,
        value_id,
        offset_bytes,
        size_bytes,
        start_time,
        end_time
    FROM _buffers
    WHERE module_id = $1 AND memory_space = $2 AND category = 'temp'
)

SELECT
    earlier.value_id AS earlier_value_id,
    temps.value_id
FROM temps
INNER JOIN temps AS earlier
    ON earlier.allocation_index = temps.allocation_index
        AND earlier.start_time <= temps.end_time
        AND temps.start_time <= earlier.end_time
        AND earlier.offset_bytes <= temps.offset_bytes
        AND temps.offset_bytes < earlier.offset_bytes + earlier.size_bytes
WHERE earlier.offset_bytes < temps.offset_bytes
    OR earlier.size_bytes > temps.size_bytes
    OR (earlier.size_bytes = temps.size_bytes AND earlier.value_id < temps.value_id)
