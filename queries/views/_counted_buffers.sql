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
-- value_id: the value, see `values`
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- instruction: the instruction that defines the value
-- opcode: its opcode
-- op_name: the framework's name of the operation, or of the argument
-- source_file: the Python file of the line that made the instruction
-- source_line: that line
-- stack_frame_id: the instruction's innermost Python frame, see `stack_frames`
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
    counted.value_id,
    counted.shape_index,
    counted.shape,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    instructions.stack_frame_id
FROM counted
LEFT JOIN instructions
    ON instructions.module_id = counted.module_id
        AND instructions.instruction_id = counted.instruction_id
