-- The change at the peaks from module $1 to module $2, in all memory spaces, by $3: a row per
-- owner whose memory changes. change_bytes add up to the change of the peak.
WITH owned AS (
    SELECT
        module_id,
        memory_space,
        counted_bytes,
        CASE $3
            WHEN 'source'
                THEN COALESCE(
                        REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line,
                        '(' || kind || ')'
                    )
            WHEN 'scope'
                THEN CASE
                        WHEN kind LIKE '%arguments' THEN '(' || kind || ')'
                        ELSE COALESCE(NULLIF(scope, ''), '(no scope)')
                    END
            WHEN 'op'
                THEN CASE
                        WHEN kind LIKE '%arguments' THEN 'argument'
                        ELSE COALESCE(operation, opcode, '(not known)')
                    END
            WHEN 'dtype' THEN COALESCE(element_type, '(index tables)')
            WHEN 'pass' THEN COALESCE(pass, '(not known)')
            WHEN 'category' THEN category
            ELSE COALESCE(role, '(not known)')
        END AS owner
    FROM _counted_buffers
    WHERE module_id IN ($1, $2) AND is_peak
),

summed AS (
    SELECT
        memory_space,
        owner,
        SUM(counted_bytes) FILTER (WHERE module_id = $1) AS a_bytes,
        SUM(counted_bytes) FILTER (WHERE module_id = $2) AS b_bytes,
        COUNT(*) FILTER (WHERE module_id = $1) AS a_buffers,
        COUNT(*) FILTER (WHERE module_id = $2) AS b_buffers
    FROM owned
    GROUP BY memory_space, owner
)

SELECT
    memory_space,
    CAST(COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0) AS BIGINT) AS change_bytes,
    owner,
    CAST(a_bytes AS BIGINT) AS a_bytes,
    CAST(b_bytes AS BIGINT) AS b_bytes,
    a_buffers,
    b_buffers
FROM summed
WHERE COALESCE(b_bytes, 0) <> COALESCE(a_bytes, 0)
ORDER BY memory_space, ABS(COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0)) DESC, owner
