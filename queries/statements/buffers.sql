-- The rows of `memhouse buffers MODULE`: module $1, memory space $2, at the time $3 or else the
-- peak, the $4 largest.
SELECT
    counted_bytes,
    CAST(counted_bytes AS DOUBLE) / NULLIF(SUM(counted_bytes) OVER (), 0) AS share,
    category,
    instruction || CASE WHEN shape_index = '{}' THEN '' ELSE shape_index END AS value,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source,
    op_name,
    REGEXP_REPLACE(shape, '\{.*', '') AS shape,
    LEAST(padding_bytes, counted_bytes) AS padding_bytes
FROM _counted_buffers
WHERE module_id = $1
    AND memory_space = $2
    AND CASE WHEN $3 IS NULL THEN is_peak ELSE time = $3 AND NOT is_peak END
ORDER BY counted_bytes DESC, size_bytes DESC, allocation_index, value_id
LIMIT $4
