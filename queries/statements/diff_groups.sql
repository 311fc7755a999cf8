-- The change at the peaks from module $1 to module $2, in all memory spaces, by each kind of owner
-- in $3: a row per kind and owner whose memory changes. The change_bytes of a kind add up to the
-- change of the peak.
WITH owned AS (
    SELECT
        module_id,
        memory_space,
        counted_at_peak_bytes AS counted_bytes,
        owned_by,
        CASE
            WHEN owned_by IN ('source', 'innermost')
                THEN REGEXP_REPLACE(owner, '^.*/([^/]*:\d+)$', '\1')
            ELSE owner
        END AS owner
    FROM _owners
    WHERE module_id IN ($1, $2)
        AND is_live_at_peak
        AND LIST_CONTAINS(CAST($3 AS VARCHAR[]), owned_by)
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
ORDER BY owned_by, memory_space, ABS(COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0)) DESC, owner
