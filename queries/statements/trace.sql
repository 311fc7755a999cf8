-- name: buffers
-- What `memhouse export MODULE FILE --format perfetto` draws as slices: every buffer of module $1,
-- with when it is there, where, and what is known of it.
WITH readers AS (
    SELECT value_id, COUNT(DISTINCT instruction_id) AS readers
    FROM uses
    WHERE module_id = $1
    GROUP BY value_id
)

SELECT
    buffers.memory_space,
    buffers.allocation_index,
    buffers.category,
    buffers.occupied_from AS start_time,
    buffers.occupied_to AS end_time,
    buffers.offset_bytes,
    buffers.size_bytes,
    buffers.padding_bytes,
    buffers.value_id,
    buffers.instruction
    || CASE WHEN buffers.shape_index = '{}' THEN '' ELSE buffers.shape_index END AS value,
    buffers.opcode,
    buffers.shape,
    buffers.op_name,
    buffers.scope,
    buffers.operation,
    buffers.source_file || ':' || buffers.source_line AS source,
    buffers.pass,
    buffers.role,
    buffers.last_use_time,
    COALESCE(readers.readers, 0) AS readers,
    COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM internal.buffers AS buffers
LEFT JOIN readers ON readers.value_id = buffers.value_id
-- Without a schedule there are no times.
WHERE buffers.module_id = $1 AND buffers.occupied_to IS NOT NULL
ORDER BY
    buffers.memory_space, buffers.occupied_from, buffers.occupied_to DESC,
    buffers.allocation_index, buffers.offset_bytes, buffers.value_id;

-- name: steps
-- The scheduled instructions of module $1, in order: what runs at each time of a trace.
SELECT
    schedule_time AS start_time,
    instruction,
    opcode,
    op_name,
    pass,
    source_file || ':' || source_line AS source
FROM instructions
WHERE module_id = $1 AND schedule_time IS NOT NULL
ORDER BY schedule_time;
