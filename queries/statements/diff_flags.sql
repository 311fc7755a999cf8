-- The flags that differ between the flag sets $1 and $2.
WITH a AS (SELECT flag, value FROM compiler_flags WHERE flags_id = $1),

b AS (SELECT flag, value FROM compiler_flags WHERE flags_id = $2)

SELECT COALESCE(a.flag, b.flag) AS flag, a.value AS a_value, b.value AS b_value
FROM a
FULL JOIN b ON b.flag = a.flag
WHERE a.value IS DISTINCT FROM b.value
ORDER BY 1
