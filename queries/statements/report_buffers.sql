-- The buffers of module $1 in memory space $2, each with the place where a report draws it.
--
-- Allocations are put on top of one another: those that are there throughout first, the largest
-- of a category first, and the temps above them.
WITH space AS (
    SELECT peak_time
    FROM module_memory
    WHERE module_id = $1 AND memory_space = $2
),

placed AS (
    SELECT
        allocation_index,
        size_bytes AS allocation_bytes,
        CAST(COALESCE(SUM(size_bytes) OVER (
            ORDER BY
                is_temp,
                NOT is_parameter,
                NOT maybe_live_out,
                NOT is_constant,
                size_bytes DESC,
                allocation_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS BIGINT) AS base
    FROM allocations
    WHERE module_id = $1 AND memory_space = $2 AND NOT is_thread_local
),

counted AS (
    SELECT
        buffers.*,
        -- As in `_counted_buffers`: what is live at the peak and was not counted before.
        CASE WHEN space.peak_time BETWEEN buffers.start_time AND buffers.end_time
                THEN
                    GREATEST(
                        buffers.offset_bytes + buffers.size_bytes - GREATEST(
                            buffers.offset_bytes,
                            COALESCE(
                                MAX(buffers.offset_bytes + buffers.size_bytes)
                                FILTER (
                                    space.peak_time BETWEEN buffers.start_time AND buffers.end_time
                                )
                                    OVER (
                                        PARTITION BY buffers.allocation_index
                                        ORDER BY
                                            buffers.offset_bytes,
                                            buffers.size_bytes DESC,
                                            buffers.value_id
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                                    ),
                                0
                            )
                        ),
                        0
                    )
            ELSE 0
        END AS peak_counted_bytes
    FROM _buffers AS buffers
    LEFT JOIN space ON TRUE
    WHERE buffers.module_id = $1 AND buffers.memory_space = $2
)

SELECT
    counted.value_id,
    counted.allocation_index,
    counted.category,
    counted.size_bytes,
    counted.padding_bytes,
    counted.peak_counted_bytes,
    placed.base + counted.offset_bytes AS address,
    counted.offset_bytes,
    placed.allocation_bytes,
    counted.start_time,
    counted.end_time,
    counted.last_use_time,
    made.instruction
    || CASE WHEN counted.shape_index = '{}' THEN '' ELSE counted.shape_index END AS value,
    CASE
        WHEN counted.shape LIKE '(%' THEN REGEXP_REPLACE(counted.shape, '\{[^{}]*\}', '', 'g')
        ELSE REGEXP_REPLACE(counted.shape, '\{.*', '')
    END AS shape,
    counted.element_type,
    held.op_name,
    REGEXP_EXTRACT(held.source_file, '[^/]*$') || ':' || held.source_line AS source,
    held.stack_frame_id,
    held.scope,
    held.operation,
    counted.pass,
    counted.role,
    counted.origin_rule,
    COALESCE(counted.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM counted
INNER JOIN placed ON placed.allocation_index = counted.allocation_index
LEFT JOIN instructions AS made
    ON made.module_id = $1 AND made.instruction_id = counted.instruction_id
LEFT JOIN _operations AS held
    ON held.module_id = $1 AND held.instruction_id = counted.held_instruction_id
ORDER BY address, counted.size_bytes DESC, counted.value_id
