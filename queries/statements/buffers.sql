-- The rows of `memhouse buffers MODULE`: module $1, memory space $2, at the time $3 or, if $3
-- is null, at the peak; the $4 largest.
WITH there AS (
    SELECT *
    FROM _counted_buffers
    WHERE module_id = $1 AND memory_space = $2 AND $3 IS NULL AND is_peak
    UNION ALL
    SELECT *
    FROM _counted_buffers
    WHERE module_id = $1 AND memory_space = $2 AND NOT is_peak AND time = $3
)

SELECT
    counted_bytes,
    CAST(counted_bytes AS DOUBLE) / NULLIF(SUM(counted_bytes) OVER (), 0) AS share,
    category,
    instruction || CASE WHEN shape_index = '{}' THEN '' ELSE shape_index END AS value,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source,
    op_name,
    REGEXP_REPLACE(shape, '\{.*', '') AS shape,
    LEAST(padding_bytes, counted_bytes) AS padding_bytes,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM there
ORDER BY counted_bytes DESC, size_bytes DESC, allocation_index, value_id
LIMIT $4
