CREATE VIEW old_buffer_times AS
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
    allocations.size_bytes,
    0 AS start_time,
    modules.schedule_length AS end_time,
    allocations.value_id
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
UNION ALL
SELECT
    module_id,
    NULL,
    NULL,
    'temp',
    NULL,
    start_time,
    end_time,
    value_id
FROM live_ranges;

CREATE VIEW old_operations AS
SELECT
    instructions.module_id,
    instructions.instruction_id,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    instructions.stack_frame_id,
    scopes.scope,
    scopes.operation
FROM instructions
LEFT JOIN scopes
    ON scopes.module_id = instructions.module_id
        AND scopes.scope_id = instructions.scope_id;

CREATE VIEW old_counted_buffers AS
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
    FROM old_buffer_times AS buffers
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
LEFT JOIN old_operations AS held
    ON held.module_id = counted.module_id
        AND held.instruction_id = counted.held_instruction_id;

CREATE VIEW old_peak_buffers AS
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
    CASE WHEN padding_bytes < counted_bytes THEN padding_bytes
        WHEN padding_bytes IS NOT NULL THEN counted_bytes END
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
FROM old_counted_buffers
WHERE is_peak;
