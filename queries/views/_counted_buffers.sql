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

-- What is told of a buffer is looked up later, for those that are there at the time.
there AS (
    SELECT
        times.module_id,
        times.memory_space,
        times.time,
        times.is_peak,
        times.peak_bytes,
        buffers.allocation_index,
        buffers.category,
        buffers.size_bytes,
        buffers.start_time,
        buffers.end_time,
        buffers.value_id
    FROM _buffer_times AS buffers
    INNER JOIN times
        ON times.module_id = buffers.module_id
            AND times.time >= buffers.start_time
            AND times.time <= buffers.end_time
            AND times.memory_space = COALESCE(buffers.memory_space, times.memory_space)
),

shown AS (
    SELECT
        there.module_id,
        there.memory_space,
        there.time,
        there.is_peak,
        there.peak_bytes,
        COALESCE(there.allocation_index, temps.allocation_index) AS allocation_index,
        there.category,
        COALESCE(there.size_bytes, "values".size_bytes) AS size_bytes,
        "values".size_bytes - "values".logical_bytes AS padding_bytes,
        CASE WHEN there.category = 'temp' THEN "values".offset_bytes ELSE 0 END AS offset_bytes,
        there.start_time,
        there.end_time,
        "values".last_use_time,
        "values".value_id,
        "values".instruction_id,
        "values".shape_index,
        "values".shape,
        "values".element_type,
        COALESCE("values".origin_instruction_id, "values".instruction_id) AS held_instruction_id,
        "values".origin_rule,
        "values".pass,
        "values".role,
        "values".residual_id
    FROM there
    -- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
    -- larger side.
    LEFT JOIN "values"
        ON "values".module_id = there.module_id
            AND "values".value_id = there.value_id
    LEFT JOIN allocations AS temps
        ON temps.module_id = there.module_id
            AND temps.allocation_index = "values".allocation_index
            AND temps.memory_space = there.memory_space
            AND temps.is_temp
    WHERE there.category <> 'temp' OR temps.allocation_index IS NOT NULL
),

counted AS (
    SELECT
        *,
        GREATEST(
            offset_bytes + size_bytes - GREATEST(
                offset_bytes,
                COALESCE(
                    MAX(offset_bytes + size_bytes) OVER (
                        PARTITION BY module_id, allocation_index, time, is_peak
                        ORDER BY offset_bytes, size_bytes DESC, value_id
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ),
                    0
                )
            ),
            0
        ) AS counted_bytes
    FROM shown
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
