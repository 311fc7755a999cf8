-- name: metrics
-- The metrics in bytes of module $1 and of module $2 in all memory spaces, where they differ.
--
-- peak_live_bytes has no history, and is shown here all the same.
WITH figures AS (
    SELECT module_id, memory_space, metric, value
    FROM internal.metrics
    WHERE metric <> 'flops'
    UNION ALL
    SELECT module_id, memory_space, 'peak_live_bytes', peak_live_bytes FROM module_memory
),

a AS (SELECT * FROM figures WHERE module_id = $1),

b AS (SELECT * FROM figures WHERE module_id = $2)

SELECT
    COALESCE(a.memory_space, b.memory_space) AS memory_space,
    COALESCE(a.metric, b.metric) AS metric,
    a.value AS a_bytes,
    b.value AS b_bytes,
    COALESCE(b.value, 0) - COALESCE(a.value, 0) AS change_bytes
FROM a
FULL JOIN b ON b.memory_space = a.memory_space AND b.metric = a.metric
WHERE a.value IS DISTINCT FROM b.value
ORDER BY 1, ABS(COALESCE(b.value, 0) - COALESCE(a.value, 0)) DESC, 2;

-- name: groups
-- The change at the peaks from module $1 to module $2, in all memory spaces, by each kind of owner
-- in $3: a row per kind and owner whose memory changes. The change_bytes of a kind add up to the
-- change of the peak.
WITH owned AS (
    SELECT
        module_id,
        memory_space,
        counted_bytes,
        owned_by,
        CASE
            WHEN owned_by IN ('source', 'innermost')
                THEN REGEXP_REPLACE(owner, '^.*/([^/]*:\d+)$', '\1')
            ELSE owner
        END AS owner
    FROM (FROM internal.owners_at($1, NULL, NULL) UNION ALL FROM internal.owners_at($2, NULL, NULL))
    WHERE LIST_CONTAINS(CAST($3 AS VARCHAR[]), owned_by)
),

summed AS (
    SELECT
        owned_by,
        memory_space,
        owner,
        SUM(counted_bytes) FILTER (WHERE module_id = $1) AS a_bytes,
        SUM(counted_bytes) FILTER (WHERE module_id = $2) AS b_bytes,
        COUNT(*) FILTER (WHERE module_id = $1) AS a_buffers,
        COUNT(*) FILTER (WHERE module_id = $2) AS b_buffers
    FROM owned
    GROUP BY owned_by, memory_space, owner
)

SELECT
    owned_by,
    memory_space,
    CAST(COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0) AS BIGINT) AS change_bytes,
    owner,
    CAST(a_bytes AS BIGINT) AS a_bytes,
    CAST(b_bytes AS BIGINT) AS b_bytes,
    a_buffers,
    b_buffers
FROM summed
WHERE COALESCE(b_bytes, 0) <> COALESCE(a_bytes, 0)
ORDER BY owned_by, memory_space, ABS(COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0)) DESC, owner;

-- name: buffers
-- The change at the peaks from module $1 to module $2, in all memory spaces: a row per change.
SELECT * FROM DIFF_BUFFERS($1, $2);

-- name: flags
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
ORDER BY 1;
