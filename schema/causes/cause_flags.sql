-- The flags that differ between each flag set of $1 and the one beside it in $2. Flags that name
-- a place do not change the program.
WITH pairs AS (SELECT UNNEST($1) AS a_flags_id, UNNEST($2) AS b_flags_id),

a AS (
    SELECT pairs.a_flags_id, pairs.b_flags_id, compiler_flags.flag, compiler_flags.value
    FROM pairs
    INNER JOIN compiler_flags ON compiler_flags.flags_id = pairs.a_flags_id
),

b AS (
    SELECT pairs.a_flags_id, pairs.b_flags_id, compiler_flags.flag, compiler_flags.value
    FROM pairs
    INNER JOIN compiler_flags ON compiler_flags.flags_id = pairs.b_flags_id
)

SELECT a_flags_id, b_flags_id, flag, a.value AS a_value, b.value AS b_value
FROM a
FULL JOIN b USING (a_flags_id, b_flags_id, flag)
WHERE a.value IS DISTINCT FROM b.value
    AND NOT REGEXP_MATCHES(flag, 'dump|_(dir|path|file)$')
ORDER BY a_flags_id, b_flags_id, flag
