-- What fills a memory space at a time, buffer by buffer, and what each buffer counts for.
--
-- A row per module, memory space, time and buffer that is there at that time. counted_bytes
-- add up to what is occupied at the time: the bytes that aliased values share count for the
-- first value in address order. Filter on is_peak, or on a time and NOT is_peak: otherwise
-- the view has a row for every buffer and every time.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- time: the time, a position in the schedule
-- is_peak: the time is the memory space's peak_time; the same time also has rows with FALSE
-- peak_bytes: the memory space's peak
-- counted_bytes: the part of the buffer's extent that no row before it in address order covers
-- allocation_index: the allocation, see `allocations`
-- category: argument, output (that is not an argument), constant, temp or other
-- size_bytes: what the allocation or the value takes
-- padding_bytes: what tiling adds to the value's logical size
-- offset_bytes: where in the allocation the buffer starts
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there
-- last_use_time: the last time at which an instruction reads the value
-- value_id: the value, see `values`
-- instruction: the instruction that makes the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- opcode: the opcode of the instruction that makes the value
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- op_name: the framework's name of what the buffer holds: an operation, or an argument
-- source_file: the Python file of the line that computes what the buffer holds
-- source_line: that line
-- stack_frame_id: the innermost Python frame of that line, see `stack_frames`
-- scope: the scope of what the buffer holds, see `scopes`
-- operation: the operation that computes what the buffer holds
-- pass: the pass that the value belongs to, see `values`
-- role: what the value is for, see `values`
-- origin_instruction: the instruction whose result the buffer holds
-- origin_rule: how the origin was found, see `values`; null if it is not known
-- is_saved_for_backward: the forward pass keeps the buffer for the backward pass
-- kind: arguments, copies of arguments, outputs, constants or temps: what to call the buffer
-- where the program has no name for it
-- made_op_name: the framework's name of the instruction that makes the value
-- made_source_file: the Python file of the line that created this instruction
-- made_source_line: that line
WITH times AS (
    SELECT module_id, memory_space, peak_time AS time, TRUE AS is_peak, peak_bytes
    FROM module_memory
    UNION ALL
    SELECT
        module_memory.module_id,
        module_memory.memory_space,
        instructions.schedule_time,
        FALSE,
        module_memory.peak_bytes
    FROM module_memory
    INNER JOIN instructions ON instructions.module_id = module_memory.module_id
),

counted AS (
    SELECT
        there.*,
        times.time,
        times.is_peak,
        times.peak_bytes,
        GREATEST(
            there.offset_bytes + there.size_bytes - GREATEST(
                there.offset_bytes,
                COALESCE(
                    MAX(there.offset_bytes + there.size_bytes) OVER (
                        PARTITION BY
                            there.module_id, there.allocation_index, times.time, times.is_peak
                        ORDER BY there.offset_bytes, there.size_bytes DESC, there.value_id
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ),
                    0
                )
            ),
            0
        ) AS counted_bytes
    FROM _buffers AS there
    INNER JOIN times
        ON times.module_id = there.module_id
            AND times.memory_space = there.memory_space
            AND times.time >= there.start_time
            AND times.time <= there.end_time
)

SELECT
    counted.module_id,
    counted.memory_space,
    counted.time,
    counted.is_peak,
    counted.peak_bytes,
    counted.counted_bytes,
    counted.allocation_index,
    counted.category,
    counted.size_bytes,
    counted.padding_bytes,
    counted.offset_bytes,
    counted.start_time,
    counted.end_time,
    counted.last_use_time,
    counted.value_id,
    made.instruction,
    counted.shape_index,
    made.opcode,
    counted.shape,
    counted.element_type,
    held.op_name,
    held.source_file,
    held.source_line,
    held.stack_frame_id,
    held.scope,
    held.operation,
    counted.pass,
    counted.role,
    held.instruction AS origin_instruction,
    counted.origin_rule,
    counted.residual_id IS NOT NULL AS is_saved_for_backward,
    CASE
        WHEN counted.category <> 'argument' AND counted.pass = 'argument'
            AND counted.origin_rule NOT IN ('operand', 'weak')
            THEN 'copies of arguments'
        WHEN counted.category = 'other' THEN 'other'
        ELSE counted.category || 's'
    END AS kind,
    made.op_name AS made_op_name,
    made.source_file AS made_source_file,
    made.source_line AS made_source_line
FROM counted
LEFT JOIN instructions AS made
    ON made.module_id = counted.module_id
        AND made.instruction_id = counted.instruction_id
LEFT JOIN _operations AS held
    ON held.module_id = counted.module_id
        AND held.instruction_id = counted.held_instruction_id
