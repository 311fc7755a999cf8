-- Who calls each Python frame of module $1: up to $2 frames outwards, the nearest first.
SELECT
    stack_frame_id,
    STRING_AGG(
        "function" || ' at ' || REGEXP_EXTRACT(file, '[^/]*$') || ':' || line, ', '
        ORDER BY depth
    ) AS called_by
FROM _CALLERS($1, NULL, $2)
GROUP BY stack_frame_id
HAVING called_by IS NOT NULL
ORDER BY stack_frame_id
