-- The flags that differ between the flag sets $1 and $2 of the dumps $3 and $4. Options of the call
-- are in a file of their own: if only one dump has this file, nobody knows which flags differ.
WITH a AS (SELECT flag, value FROM compiler_flags WHERE flags_id = $1),

b AS (SELECT flag, value FROM compiler_flags WHERE flags_id = $2)

SELECT COALESCE(a.flag, b.flag) AS flag, a.value AS a_value, b.value AS b_value
FROM a
FULL JOIN b ON b.flag = a.flag
WHERE
    a.value IS DISTINCT FROM b.value
    AND (
        SELECT COUNT(DISTINCT dump_id)
        FROM dump_files
        WHERE dump_id IN ($3, $4) AND kind = 'tpu-comp-env' AND status = 'ok'
    ) IN (0, CASE WHEN $3 = $4 THEN 1 ELSE 2 END)
ORDER BY 1
