-- What a treemap shows: the buffers that fill memory space $2 of module $1 at its peak.
SELECT
    buffers.counted_at_peak_bytes AS counted_bytes,
    buffers.kind,
    buffers.category,
    buffers.role,
    buffers.module_path,
    buffers.fold,
    COALESCE(buffers.operation, buffers.opcode) AS operation,
    buffers.op_name,
    buffers.source_file,
    buffers.source_line,
    buffers.library_file,
    buffers.library_line,
    stack_frames.function,
    buffers.shape,
    buffers.instruction
    || CASE WHEN buffers.shape_index = '{}' THEN '' ELSE buffers.shape_index END AS value,
    COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM internal.buffers AS buffers
LEFT JOIN stack_frames
    ON stack_frames.module_id = buffers.module_id
        AND stack_frames.stack_frame_id = buffers.stack_frame_id
        AND stack_frames.file = buffers.source_file
WHERE buffers.module_id = $1
    AND buffers.memory_space = $2
    AND buffers.is_live_at_peak
    AND buffers.counted_at_peak_bytes > 0
ORDER BY
    counted_bytes DESC, buffers.allocation_index, buffers.offset_bytes, buffers.value_id
