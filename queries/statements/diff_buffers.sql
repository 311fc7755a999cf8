-- The change at the peak from module $1 to module $2 in memory space $3, buffer by buffer.
--
-- Instruction numbers drift from one compilation to the next, so buffers are matched by what
-- they are: first by everything but their numbers, then by everything but their dimensions.
-- A buffer without op_name is known by its instruction's name without the number. Every buffer
-- of both peaks is in exactly one row, so change_bytes add up to the change of the peak.
WITH buffers AS (
    SELECT
        module_id = $2 AS is_b,
        counted_bytes,
        category,
        opcode,
        COALESCE(op_name, '') AS op_name,
        COALESCE(op_name, REGEXP_REPLACE(instruction, '[.0-9]+$', '')) AS identity,
        COALESCE(source_file || ':' || source_line, '') AS source,
        REGEXP_REPLACE(shape, '\{.*', '') AS shape,
        instruction || CASE WHEN shape_index = '{}' THEN '' ELSE shape_index END AS value,
        start_time,
        end_time,
        rank
    FROM peak_buffers
    WHERE module_id IN ($1, $2) AND memory_space = $3
),

numbered AS (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY is_b, category, opcode, identity, source, shape ORDER BY rank
        ) AS nth
    FROM buffers
),

same AS (
    SELECT a.rank AS a_rank, b.rank AS b_rank
    FROM numbered AS a
    INNER JOIN numbered AS b
        ON NOT a.is_b AND b.is_b
            AND b.category = a.category
            AND b.opcode = a.opcode
            AND b.identity = a.identity
            AND b.source = a.source
            AND b.shape = a.shape
            AND b.nth = a.nth
),

rest AS (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY is_b, category, opcode, identity, source ORDER BY rank
        ) AS nth_of_rest
    FROM buffers
    WHERE CASE
            WHEN is_b THEN rank NOT IN (SELECT b_rank FROM same)
            ELSE rank NOT IN (SELECT a_rank FROM same)
        END
),

resized AS (
    SELECT a.rank AS a_rank, b.rank AS b_rank
    FROM rest AS a
    INNER JOIN rest AS b
        ON NOT a.is_b AND b.is_b
            AND b.category = a.category
            AND b.opcode = a.opcode
            AND b.identity = a.identity
            AND b.source = a.source
            AND b.nth_of_rest = a.nth_of_rest
),

pairs AS (
    SELECT a_rank, b_rank FROM same
    UNION ALL
    SELECT a_rank, b_rank FROM resized
    UNION ALL
    SELECT rank, NULL FROM buffers
    WHERE NOT is_b
        AND rank NOT IN (SELECT a_rank FROM same)
        AND rank NOT IN (SELECT a_rank FROM resized)
    UNION ALL
    SELECT NULL, rank FROM buffers
    WHERE is_b
        AND rank NOT IN (SELECT b_rank FROM same)
        AND rank NOT IN (SELECT b_rank FROM resized)
),

-- Buffers at any time: a buffer that is new at the peak may only have changed its life.
anywhere AS (
    SELECT DISTINCT
        _buffers.module_id = $2 AS is_b,
        _buffers.category,
        instructions.opcode,
        COALESCE(instructions.op_name, '') AS op_name,
        REGEXP_REPLACE(_buffers.shape, '\{.*', '') AS shape
    FROM _buffers
    INNER JOIN instructions
        ON instructions.module_id = _buffers.module_id
            AND instructions.instruction_id = _buffers.instruction_id
    WHERE _buffers.module_id IN ($1, $2) AND _buffers.memory_space = $3
)

SELECT
    COALESCE(b.counted_bytes, 0) - COALESCE(a.counted_bytes, 0) AS change_bytes,
    CASE
        WHEN a.rank IS NOT NULL AND b.rank IS NOT NULL
            THEN
                CASE
                    WHEN b.counted_bytes > a.counted_bytes THEN 'grew'
                    WHEN b.counted_bytes < a.counted_bytes THEN 'shrank'
                    ELSE 'same'
                END
        WHEN a.rank IS NULL
            THEN
                CASE WHEN elsewhere.is_b IS NULL THEN 'came' ELSE 'now at the peak' END
        ELSE CASE WHEN elsewhere.is_b IS NULL THEN 'went' ELSE 'not at the peak now' END
    END AS what,
    a.counted_bytes AS a_bytes,
    b.counted_bytes AS b_bytes,
    COALESCE(b.category, a.category) AS category,
    COALESCE(b.value, a.value) AS value,
    REGEXP_EXTRACT(COALESCE(b.source, a.source), '[^/]*$') AS source,
    COALESCE(b.op_name, a.op_name) AS op_name,
    CASE
        WHEN a.shape <> b.shape THEN a.shape || ' → ' || b.shape
        ELSE COALESCE(b.shape, a.shape)
    END AS shape,
    COALESCE(b.opcode, a.opcode) AS opcode,
    a.start_time AS a_start_time,
    a.end_time AS a_end_time,
    b.start_time AS b_start_time,
    b.end_time AS b_end_time
FROM pairs
LEFT JOIN buffers AS a ON NOT a.is_b AND a.rank = pairs.a_rank
LEFT JOIN buffers AS b ON b.is_b AND b.rank = pairs.b_rank
LEFT JOIN anywhere AS elsewhere
    ON elsewhere.is_b = (b.rank IS NULL)
        AND (a.rank IS NULL OR b.rank IS NULL)
        AND elsewhere.category = COALESCE(b.category, a.category)
        AND elsewhere.opcode = COALESCE(b.opcode, a.opcode)
        AND elsewhere.op_name = COALESCE(b.op_name, a.op_name)
        AND elsewhere.shape = COALESCE(b.shape, a.shape)
WHERE COALESCE(b.counted_bytes, 0) <> COALESCE(a.counted_bytes, 0)
ORDER BY ABS(COALESCE(b.counted_bytes, 0) - COALESCE(a.counted_bytes, 0)) DESC, value
