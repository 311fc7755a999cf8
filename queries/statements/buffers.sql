-- The rows of `memhouse buffers MODULE`: module $1, memory space $2, at the time $3 or, if $3
-- is null, at the peak; the $4 largest, and the rest as one. $5 and $6 are Python frames and who
-- calls each.
WITH stacks AS (
    SELECT
        UNNEST(CAST($5 AS INTEGER[])) AS stack_frame_id,
        UNNEST(CAST($6 AS VARCHAR[])) AS called_by
),

ordered AS (
    SELECT
        there.*,
        stacks.called_by,
        ROW_NUMBER() OVER (
            ORDER BY
                there.counted_bytes DESC, there.size_bytes DESC, there.allocation_index,
                there.value_id
        ) AS place
    FROM BUFFERS_AT($1, $2, $3) AS there
    LEFT JOIN stacks ON stacks.stack_frame_id = there.stack_frame_id
),

shown AS (
    SELECT
        counted_bytes,
        CAST(counted_bytes AS DOUBLE) / NULLIF(SUM(counted_bytes) OVER (), 0) AS share,
        CASE
            WHEN shape LIKE '(%' THEN REGEXP_REPLACE(shape, '\{[^{}]*\}', '', 'g')
            ELSE REGEXP_REPLACE(shape, '\{.*', '')
        END AS shape,
        REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source,
        called_by,
        op_name,
        category,
        role,
        pass,
        instruction || CASE WHEN shape_index = '{}' THEN '' ELSE shape_index END AS value,
        CASE
            WHEN padding_bytes < counted_bytes THEN padding_bytes
            WHEN padding_bytes IS NOT NULL THEN counted_bytes
        END AS padding_bytes,
        occupied_from AS start_time,
        occupied_to AS end_time,
        last_use_time,
        CASE WHEN shape NOT LIKE '(%' THEN REGEXP_EXTRACT(shape, '\{.*') END AS layout,
        COALESCE(origin_rule IN ('operand', 'weak'), FALSE) AS is_guess,
        place
    FROM ordered
)

SELECT
    *,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM (
    SELECT * FROM shown WHERE place <= COALESCE($4, place)
    UNION ALL
    SELECT
        CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
        SUM(share) AS share,
        NULL AS shape,
        NULL AS source,
        NULL AS called_by,
        COUNT(*) || ' more' AS op_name,
        NULL AS category,
        NULL AS role,
        NULL AS pass,
        NULL AS value,
        CAST(SUM(padding_bytes) AS BIGINT) AS padding_bytes,
        NULL AS start_time,
        NULL AS end_time,
        NULL AS last_use_time,
        NULL AS layout,
        FALSE AS is_guess,
        $4 + 1 AS place
    FROM shown
    WHERE place > $4
    HAVING COUNT(*) > 0
) AS listed
ORDER BY place
