-- What fills a memory space at its peak, buffer by buffer.
--
-- A row per allocation that is occupied throughout, shown by the value that stands for it, and
-- a row per value that is live in a temp allocation at the peak. counted_bytes add up to the
-- peak: the bytes that aliased values share count for the first value in address order.
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
-- instruction: the instruction that defines the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- opcode: the instruction's opcode
-- shape: the value's shape with layout
-- op_name: the framework's name of the operation, or of the argument
-- source_file: the Python file of the line that made the instruction
-- source_line: that line
-- start_time: first time the buffer is there
-- end_time: last time the buffer is there; the schedule's length if the buffer lives out
-- stack_frame_id: the instruction's innermost Python frame, see `stack_frames`
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
    LEAST(padding_bytes, counted_bytes) AS padding_bytes,
    instruction,
    shape_index,
    opcode,
    shape,
    op_name,
    source_file,
    source_line,
    start_time,
    end_time,
    stack_frame_id,
    allocation_index,
    offset_bytes,
    value_id
FROM _counted_buffers
WHERE is_peak
