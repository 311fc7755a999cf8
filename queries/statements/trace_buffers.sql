-- What `memhouse export MODULE FILE --format perfetto` draws as slices: every buffer of module $1,
-- with when it is there, where, and what is known of it.
WITH readers AS (
    SELECT value_id, COUNT(DISTINCT instruction_id) AS readers
    FROM uses
    WHERE module_id = $1
    GROUP BY value_id
)

SELECT
    _buffers.memory_space,
    _buffers.allocation_index,
    _buffers.category,
    _buffers.start_time,
    _buffers.end_time,
    _buffers.offset_bytes,
    _buffers.size_bytes,
    _buffers.padding_bytes,
    _buffers.value_id,
    made.instruction
    || CASE WHEN _buffers.shape_index = '{}' THEN '' ELSE _buffers.shape_index END AS value,
    made.opcode,
    _buffers.shape,
    held.op_name,
    held.scope,
    held.operation,
    held.source_file || ':' || held.source_line AS source,
    _buffers.pass,
    _buffers.role,
    _buffers.last_use_time,
    COALESCE(readers.readers, 0) AS readers,
    COALESCE(_buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM _buffers
LEFT JOIN instructions AS made
    ON made.module_id = _buffers.module_id
        AND made.instruction_id = _buffers.instruction_id
LEFT JOIN _operations AS held
    ON held.module_id = _buffers.module_id
        AND held.instruction_id = _buffers.held_instruction_id
LEFT JOIN readers ON readers.value_id = _buffers.value_id
-- Without a schedule there are no times.
WHERE _buffers.module_id = $1 AND _buffers.end_time IS NOT NULL
ORDER BY
    _buffers.memory_space, _buffers.start_time, _buffers.end_time DESC,
    _buffers.allocation_index, _buffers.offset_bytes, _buffers.value_id
