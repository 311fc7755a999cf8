-- name: by_line
-- The rows of `memhouse saved MODULE`: module $1, memory space $2, the $3 largest. Tensors of one
-- line, one shape and one reader are a row.
WITH origin AS (
    SELECT origin
    FROM modules
    WHERE module_id = $1
),

grouped AS (
    SELECT
        CAST(SUM(size_bytes) AS BIGINT) AS size_bytes,
        COUNT(*) AS tensors,
        layers,
        -- A layout tells no shapes apart for a person.
        REGEXP_REPLACE(shape, '\{.*', '') AS shape,
        COALESCE(REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line, scope, '')
            AS source,
        operation,
        COALESCE(
            REGEXP_EXTRACT(read_source_file, '[^/]*$') || ':' || read_source_line, read_scope, ''
        ) AS read_by,
        CAST(SUM(CASE WHEN is_live_at_peak THEN size_bytes ELSE 0 END) AS BIGINT)
            AS at_peak_bytes
    FROM internal.saved_for_backward
    WHERE module_id = $1 AND memory_space = $2
    GROUP BY ALL
)

SELECT grouped.*, origin.origin
FROM grouped
CROSS JOIN origin
ORDER BY size_bytes DESC, source, shape, operation, read_by, layers
LIMIT COALESCE($3, 9223372036854775807);

-- name: residuals
-- What the forward pass of module $1 keeps in memory space $2 for the backward pass, the
-- largest first.
SELECT
    size_bytes,
    layers,
    is_live_at_peak AS live_at_peak,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS made_by,
    REGEXP_EXTRACT(read_source_file, '[^/]*$') || ':' || read_source_line AS read_by,
    idle_time,
    peak_idle_time,
    shape,
    op_name,
    instruction,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM internal.saved_for_backward
WHERE module_id = $1 AND memory_space = $2
ORDER BY size_bytes DESC, residual_id;
