-- The rows of `memhouse owners MODULE`: module $1, memory space $2, the $3 largest lines.
SELECT
    counted_bytes,
    share,
    buffers,
    COALESCE(source_file || ':' || source_line, '(no line: ' || categories || ')') AS source,
    categories,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM memory_by_source
WHERE module_id = $1 AND memory_space = $2
ORDER BY counted_bytes DESC, source
LIMIT $3
