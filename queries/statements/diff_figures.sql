-- The figures of module $1 beside those of module $2 in all memory spaces, a row each.
WITH a AS (
    UNPIVOT (SELECT * EXCLUDE (module_id) FROM module_memory WHERE module_id = $1)
    ON COLUMNS('_bytes$') INTO NAME figure VALUE bytes
),

b AS (
    UNPIVOT (SELECT * EXCLUDE (module_id) FROM module_memory WHERE module_id = $2)
    ON COLUMNS('_bytes$') INTO NAME figure VALUE bytes
)

SELECT
    COALESCE(a.memory_space, b.memory_space) AS memory_space,
    COALESCE(a.figure, b.figure) AS figure,
    a.bytes AS a_bytes,
    b.bytes AS b_bytes,
    COALESCE(b.bytes, 0) - COALESCE(a.bytes, 0) AS change_bytes
FROM a
FULL JOIN b ON b.memory_space = a.memory_space AND b.figure = a.figure
WHERE a.bytes IS DISTINCT FROM b.bytes
ORDER BY 1, ABS(COALESCE(b.bytes, 0) - COALESCE(a.bytes, 0)) DESC, figure
