-- The Python stacks of what fills memory space $2 of module $1 at its peak: the outermost frame
-- first, then the operation. What no stack made is named by its kind and its module's path. The
-- bytes add up to the peak.
WITH RECURSIVE frames AS (
    SELECT
        stack_frame_id,
        parent_frame_id,
        REPLACE(
            COALESCE("function", '?') || ' (' || COALESCE(REGEXP_EXTRACT(file, '[^/\\]*$'), '?')
            || ':' || COALESCE(CAST(line AS VARCHAR), '?') || ')',
            ';', ','
        ) AS frame
    FROM stack_frames
    WHERE module_id = $1
),

stacks AS (
    SELECT
        stack_frame_id,
        frame AS stack
    FROM frames
    WHERE parent_frame_id IS NULL
    UNION ALL
    SELECT
        frames.stack_frame_id,
        stacks.stack || ';' || frames.frame
    FROM stacks
    INNER JOIN frames ON frames.parent_frame_id = stacks.stack_frame_id
)

SELECT
    CONCAT_WS(
        ';',
        COALESCE(
            stacks.stack,
            '(' || buffers.kind || ')'
            || COALESCE(';' || NULLIF(REPLACE(buffers.module_path, '/', ';'), ''), '')
        ),
        CASE
            WHEN buffers.kind LIKE '%arguments' THEN COALESCE(buffers.role, '(not known)')
            ELSE REPLACE(COALESCE(buffers.operation, buffers.opcode, '(not known)'), ';', ',')
        END
    ) AS stack,
    CAST(SUM(buffers.counted_at_peak_bytes) AS BIGINT) AS counted_bytes
FROM buffers
LEFT JOIN "values"
    ON "values".module_id = buffers.module_id
        AND "values".value_id = buffers.value_id
LEFT JOIN instructions
    ON instructions.module_id = buffers.module_id
        AND instructions.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
LEFT JOIN stacks ON stacks.stack_frame_id = instructions.stack_frame_id
WHERE buffers.module_id = $1
    AND buffers.memory_space = $2
    AND buffers.is_live_at_peak
    AND buffers.counted_at_peak_bytes > 0
GROUP BY ALL
ORDER BY counted_bytes DESC, stack
