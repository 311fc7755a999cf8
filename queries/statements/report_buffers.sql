-- The buffers of module $1 in memory space $2, each with the place where a report draws it.
--
-- Allocations are put on top of one another: those that are there throughout first, the largest
-- of a category first, and the temps above them.
WITH placed AS (
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
)

SELECT
    buffers.value_id,
    buffers.allocation_index,
    buffers.category,
    buffers.size_bytes,
    buffers.padding_bytes,
    COALESCE(buffers.counted_at_peak_bytes, 0) AS peak_counted_bytes,
    placed.base + buffers.offset_bytes AS address,
    buffers.offset_bytes,
    placed.allocation_bytes,
    buffers.taken_from AS start_time,
    buffers.taken_to AS end_time,
    buffers.last_use_time,
    buffers.instruction
    || CASE WHEN buffers.shape_index = '{}' THEN '' ELSE buffers.shape_index END AS value,
    CASE
        WHEN buffers.shape LIKE '(%' THEN REGEXP_REPLACE(buffers.shape, '\{[^{}]*\}', '', 'g')
        ELSE REGEXP_REPLACE(buffers.shape, '\{.*', '')
    END AS shape,
    buffers.element_type,
    buffers.op_name,
    REGEXP_EXTRACT(buffers.source_file, '[^/]*$') || ':' || buffers.source_line AS source,
    buffers.stack_frame_id,
    buffers.scope,
    buffers.operation,
    buffers.pass,
    buffers.role,
    buffers.origin_rule,
    COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM _module_buffers AS buffers
INNER JOIN placed ON placed.allocation_index = buffers.allocation_index
WHERE buffers.module_id = $1 AND buffers.memory_space = $2
ORDER BY address, buffers.size_bytes DESC, buffers.value_id
