-- The change at the peaks from module $1 to module $2, in all memory spaces, by each kind of owner
-- in $3: a row per kind and owner whose memory changes. The change_bytes of a kind add up to the
-- change of the peak.
WITH owned AS (
    SELECT
        module_id,
        memory_space,
        counted_at_peak_bytes AS counted_bytes,
        kinds.kind AS owned_by,
        CASE kinds.kind
            WHEN 'source'
                THEN COALESCE(
                        REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line,
                        '(' || there.kind || ')'
                    )
            WHEN 'scope'
                THEN CASE
                        WHEN there.kind LIKE '%arguments' THEN '(' || there.kind || ')'
                        ELSE COALESCE(NULLIF(scope, ''), '(no scope)')
                    END
            WHEN 'op'
                THEN CASE
                        WHEN there.kind LIKE '%arguments' THEN 'argument'
                        ELSE COALESCE(operation, opcode, '(not known)')
                    END
            WHEN 'dtype' THEN COALESCE(element_type, '(index tables)')
            WHEN 'pass' THEN COALESCE(pass, '(not known)')
            WHEN 'category' THEN category
            ELSE COALESCE(role, '(not known)')
        END AS owner
    FROM buffers AS there
    CROSS JOIN (SELECT UNNEST(CAST($3 AS VARCHAR[])) AS kind) AS kinds
    WHERE module_id IN ($1, $2) AND is_live_at_peak
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
