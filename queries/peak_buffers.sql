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
-- start_time: first time the value is live
-- end_time: last time the value is live
-- stack_frame_id: its innermost Python frame, see `stack_frames`
-- allocation_index: the allocation, see `allocations`
-- offset_bytes: where in the allocation it starts
-- value_id: the value, see `values`
WITH throughout AS (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        CASE
            WHEN allocations.is_parameter THEN 'argument'
            WHEN allocations.maybe_live_out THEN 'output'
            WHEN allocations.is_constant THEN 'constant'
            ELSE 'other'
        END AS category,
        allocations.size_bytes AS counted_bytes,
        allocations.size_bytes,
        "values".size_bytes - "values".logical_bytes AS padding_bytes,
        "values".offset_bytes,
        "values".value_id,
        "values".instruction_id,
        "values".shape_index,
        "values".shape,
        ROW_NUMBER() OVER (
            PARTITION BY allocations.module_id, allocations.allocation_index
            ORDER BY "values".size_bytes DESC, "values".value_id
        ) AS size_rank
    FROM allocations
    LEFT JOIN "values"
        ON "values".module_id = allocations.module_id
        AND "values".allocation_index = allocations.allocation_index
    WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
),

live_in_temp AS (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        "values".size_bytes,
        "values".size_bytes - "values".logical_bytes AS padding_bytes,
        "values".offset_bytes,
        "values".value_id,
        "values".instruction_id,
        "values".shape_index,
        "values".shape,
        MAX("values".offset_bytes + "values".size_bytes) OVER (
            PARTITION BY allocations.module_id, allocations.allocation_index
            ORDER BY "values".offset_bytes, "values".size_bytes DESC, "values".value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_to
    FROM allocations
    INNER JOIN module_memory
        ON module_memory.module_id = allocations.module_id
        AND module_memory.memory_space = allocations.memory_space
    INNER JOIN "values"
        ON "values".module_id = allocations.module_id
        AND "values".allocation_index = allocations.allocation_index
    INNER JOIN live_ranges
        ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
    WHERE allocations.is_temp
        AND live_ranges.start_time <= module_memory.peak_time
        AND live_ranges.end_time >= module_memory.peak_time
),

counted_in_temp AS (
    SELECT
        *,
        GREATEST(
            offset_bytes + size_bytes - GREATEST(offset_bytes, COALESCE(covered_to, 0)), 0
        ) AS counted_bytes
    FROM live_in_temp
),

buffers AS (
    SELECT
        module_id, memory_space, allocation_index, category, counted_bytes, size_bytes,
        padding_bytes, offset_bytes, value_id, instruction_id, shape_index, shape
    FROM throughout
    WHERE size_rank = 1
    UNION ALL
    SELECT
        module_id, memory_space, allocation_index, 'temp', counted_bytes, size_bytes,
        LEAST(padding_bytes, counted_bytes), offset_bytes, value_id, instruction_id,
        shape_index, shape
    FROM counted_in_temp
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
    CAST(buffers.counted_bytes AS DOUBLE) / NULLIF(module_memory.peak_bytes, 0) AS share,
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
    buffers.padding_bytes,
    instructions.instruction,
    buffers.shape_index,
    instructions.opcode,
    buffers.shape,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    live_ranges.start_time,
    live_ranges.end_time,
    instructions.stack_frame_id,
    buffers.allocation_index,
    buffers.offset_bytes,
    buffers.value_id
FROM buffers
INNER JOIN module_memory
    ON module_memory.module_id = buffers.module_id
    AND module_memory.memory_space = buffers.memory_space
LEFT JOIN instructions
    ON instructions.module_id = buffers.module_id
    AND instructions.instruction_id = buffers.instruction_id
LEFT JOIN live_ranges
    ON live_ranges.module_id = buffers.module_id
    AND live_ranges.value_id = buffers.value_id
WHERE module_memory.peak_bytes IS NOT NULL
