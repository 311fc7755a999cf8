-- What fills a memory space at its peak, buffer by buffer.
--
-- A row per allocation that is occupied throughout, shown by its largest value, and a row per
-- value that is live in a temp allocation at the peak. counted_bytes add up to the peak:
-- aliased values stand in the same bytes, and these count for the first in address order.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- rank: 1 for the buffer that counts most
-- counted_bytes: the part of its extent that no row before it in address order covers
-- share: counted_bytes over the peak
-- running_bytes: counted_bytes of this and all higher ranks
-- category: argument, output (that is no argument), constant, temp or other
-- size_bytes: what the value, or the allocation that is occupied throughout, takes
-- padding_bytes: of counted_bytes, what tiling adds to the logical size
-- instruction: the instruction that defines the value
-- shape_index: which part of its shape, `{}` for all of it
-- opcode: its opcode
-- shape: the value's shape with layout
-- op_name: the framework's name of the operation, or of the argument
-- source_file: the Python file of the line that made it
-- source_line: that line
-- start_time: first time it is there
-- end_time: last time it is there; the schedule's length if it lives out
-- stack_frame_id: its innermost Python frame, see `stack_frames`
-- allocation_index: the allocation, see `allocations`
-- offset_bytes: where in the allocation it starts
-- value_id: the value, see `values`
WITH buffers AS (
    SELECT
        there.*,
        module_memory.peak_bytes,
        GREATEST(
            there.offset_bytes + there.size_bytes - GREATEST(
                there.offset_bytes,
                COALESCE(
                    MAX(there.offset_bytes + there.size_bytes) OVER (
                        PARTITION BY there.module_id, there.allocation_index
                        ORDER BY there.offset_bytes, there.size_bytes DESC, there.value_id
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ),
                    0
                )
            ),
            0
        ) AS counted_bytes
    FROM _buffers AS there
    INNER JOIN module_memory
        ON module_memory.module_id = there.module_id
        AND module_memory.memory_space = there.memory_space
        AND there.start_time <= module_memory.peak_time
        AND there.end_time >= module_memory.peak_time
)

SELECT
    buffers.module_id,
    buffers.memory_space,
    ROW_NUMBER() OVER (
        PARTITION BY buffers.module_id, buffers.memory_space
        ORDER BY
            buffers.counted_bytes DESC, buffers.size_bytes DESC,
            buffers.allocation_index, buffers.value_id
    ) AS rank,
    buffers.counted_bytes,
    CAST(buffers.counted_bytes AS DOUBLE) / NULLIF(buffers.peak_bytes, 0) AS share,
    CAST(
        SUM(buffers.counted_bytes) OVER (
            PARTITION BY buffers.module_id, buffers.memory_space
            ORDER BY
                buffers.counted_bytes DESC, buffers.size_bytes DESC,
                buffers.allocation_index, buffers.value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT
    ) AS running_bytes,
    buffers.category,
    buffers.size_bytes,
    LEAST(buffers.padding_bytes, buffers.counted_bytes) AS padding_bytes,
    instructions.instruction,
    buffers.shape_index,
    instructions.opcode,
    buffers.shape,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    buffers.start_time,
    buffers.end_time,
    instructions.stack_frame_id,
    buffers.allocation_index,
    buffers.offset_bytes,
    buffers.value_id
FROM buffers
LEFT JOIN instructions
    ON instructions.module_id = buffers.module_id
    AND instructions.instruction_id = buffers.instruction_id
