-- What fills a memory space at its peak, buffer by buffer.
--
-- A row per allocation that is occupied throughout, shown by the value that it is for, and a
-- row per value that is live in a temp allocation at the peak. counted_bytes add up to the
-- peak: the bytes that aliased values share count for the first value in address order.
-- op_name, source, scope and operation say what a buffer holds: the origin. A copy, a loop or a
-- fusion may have made the buffer: instruction, opcode and the columns made_… say so. Without
-- HLO text the origin is the instruction that makes the value.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- rank: 1 for the buffer that counts most
-- counted_bytes: the part of the buffer's extent that no row before it in address order covers
-- share: counted_bytes over the peak
-- running_bytes: counted_bytes of this and all higher ranks
-- category: argument, output (that is not an argument), constant, temp or other
-- size_bytes: what the value, or the allocation that is occupied throughout, takes
-- padding_bytes: of counted_bytes, what tiling adds to the logical size
-- element_type: for example bf16; null for a tuple
-- shape: the value's shape with layout
-- op_name: the framework's name of what the buffer holds: an operation, or an argument
-- source_file: the Python file of the line that computes what the buffer holds
-- source_line: that line
-- stack_frame_id: the innermost Python frame of that line, see `stack_frames`
-- scope: the scope of what the buffer holds, see `scopes`
-- operation: the operation that computes what the buffer holds, for example dot_general
-- pass: argument, forward, backward, rematerialised, optimizer or other, see `values`
-- role: weight, optimizer state, activation, gradient and so on, see `values`
-- is_saved_for_backward: the forward pass keeps the buffer for the backward pass
-- origin_instruction: the instruction whose result the buffer holds
-- origin_rule: how the origin was found, see `values`; null if it is not known
-- instruction: the instruction that makes the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- opcode: the opcode of the instruction that makes the value
-- made_op_name: the framework's name of the instruction that makes the value
-- made_source_file: the Python file of the line that created this instruction
-- made_source_line: that line
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there; the schedule's length if the buffer lives out
-- last_use_time: the last time at which an instruction reads the value
-- allocation_index: the allocation, see `allocations`
-- offset_bytes: where in the allocation the buffer starts
-- value_id: the value, see `values`
SELECT
    module_id,
    memory_space,
    ROW_NUMBER() OVER (
        PARTITION BY module_id, memory_space
        ORDER BY counted_bytes DESC, size_bytes DESC, allocation_index, value_id
    ) AS rank,
    counted_bytes,
    CAST(counted_bytes AS DOUBLE) / NULLIF(peak_bytes, 0) AS share,
    CAST(
        SUM(counted_bytes) OVER (
            PARTITION BY module_id, memory_space
            ORDER BY counted_bytes DESC, size_bytes DESC, allocation_index, value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT
    ) AS running_bytes,
    category,
    size_bytes,
    CASE WHEN padding_bytes IS NOT NULL THEN LEAST(padding_bytes, counted_bytes) END
        AS padding_bytes,
    element_type,
    shape,
    op_name,
    source_file,
    source_line,
    stack_frame_id,
    scope,
    operation,
    pass,
    role,
    is_saved_for_backward,
    origin_instruction,
    origin_rule,
    instruction,
    shape_index,
    opcode,
    made_op_name,
    made_source_file,
    made_source_line,
    start_time,
    end_time,
    last_use_time,
    allocation_index,
    offset_bytes,
    value_id
FROM _counted_buffers
WHERE is_peak
