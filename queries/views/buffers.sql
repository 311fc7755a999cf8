-- What each instruction says of the values that it makes and of those whose origin it is.
--
-- A row per instruction.
CREATE VIEW _operations AS
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

-- Every value with its life, and with what it holds.
--
-- A row per value. A thread-local value has no life, and neither do some constants.
CREATE VIEW _lives AS
SELECT
    "values".module_id,
    "values".memory_space,
    "values".value_id,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".logical_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    "values".instruction_id,
    "values".shape_index,
    "values".shape,
    "values".element_type,
    COALESCE("values".origin_instruction_id, "values".instruction_id) AS held_instruction_id,
    "values".origin_rule,
    "values".pass,
    "values".role,
    "values".residual_id,
    "values".last_use_time,
    live_ranges.start_time,
    live_ranges.end_time
FROM "values"
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id;

-- Every value with its life, with what it holds, and with who made it.
--
-- A row per value.
CREATE VIEW _values AS
SELECT
    _lives.module_id,
    _lives.memory_space,
    _lives.value_id,
    _lives.allocation_index,
    _lives.size_bytes,
    _lives.logical_bytes,
    _lives.padding_bytes,
    made.instruction,
    _lives.shape_index,
    made.opcode,
    _lives.shape,
    _lives.element_type,
    _lives.start_time,
    _lives.end_time,
    _lives.last_use_time,
    held.op_name,
    held.source_file,
    held.source_line,
    held.stack_frame_id,
    held.scope,
    held.operation,
    _lives.pass,
    _lives.role,
    held.instruction AS origin_instruction,
    _lives.origin_rule,
    _lives.residual_id IS NOT NULL AS is_saved_for_backward,
    made.op_name AS made_op_name,
    made.source_file AS made_source_file,
    made.source_line AS made_source_line
FROM _lives
-- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
-- larger side.
LEFT JOIN instructions AS made
    ON made.module_id = _lives.module_id
        AND made.instruction_id = _lives.instruction_id
LEFT JOIN _operations AS held
    ON held.module_id = _lives.module_id
        AND held.instruction_id = _lives.held_instruction_id;

-- When each buffer is there, and nothing else: so that those of a time are found quickly.
--
-- A row per allocation that is occupied throughout, and per value with a live range, also of
-- values outside of temp allocations: look them up in `values`.
CREATE VIEW _buffer_times AS
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

-- Everything that takes memory of its own at some time.
--
-- A row per allocation that is occupied throughout, shown by the value that it is for: the
-- argument, the result, the constant; and a row per value in a temp allocation.
CREATE VIEW _buffers AS
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
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    0 AS offset_bytes,
    0 AS start_time,
    modules.schedule_length AS end_time,
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
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
LEFT JOIN "values"
    ON "values".module_id = allocations.module_id
        AND "values".value_id = allocations.value_id
WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
UNION ALL
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.allocation_index,
    'temp' AS category,
    _lives.size_bytes,
    _lives.padding_bytes,
    _lives.offset_bytes,
    _lives.start_time,
    _lives.end_time,
    _lives.last_use_time,
    _lives.value_id,
    _lives.instruction_id,
    _lives.shape_index,
    _lives.shape,
    _lives.element_type,
    _lives.held_instruction_id,
    _lives.origin_rule,
    _lives.pass,
    _lives.role,
    _lives.residual_id
FROM allocations
INNER JOIN _lives
    ON _lives.module_id = allocations.module_id
        AND _lives.allocation_index = allocations.allocation_index
WHERE allocations.is_temp AND _lives.start_time IS NOT NULL;

-- What fills a memory space at a time, buffer by buffer, and what each buffer counts for.
--
-- A row per module, memory space, time and buffer that is there at that time. counted_bytes
-- add up to what is occupied at the time: the bytes that aliased values share count for the
-- first value in address order. Filter on is_peak, or on a time and NOT is_peak: otherwise
-- the view has a row for every buffer and every time.
CREATE VIEW _counted_buffers AS
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
        AND held.instruction_id = counted.held_instruction_id;

-- What fills a memory space at its peak, buffer by buffer.
--
-- A row per allocation that is occupied throughout, shown by the value that it is for, and a
-- row per value that is live in a temp allocation at the peak. counted_bytes add up to the peak:
-- the bytes that aliased values share count for the first value in address order.
-- op_name, source, scope and operation say what a buffer holds: the origin. A copy, a loop or a
-- fusion may have made the buffer: instruction, opcode and the columns made_… say so. Without
-- HLO text the origin is the instruction that makes the value.
--
-- rank: 1 for the buffer that counts most
-- counted_bytes: the part of the buffer's extent that no row before it in address order covers
-- running_bytes: counted_bytes of this and all higher ranks
-- size_bytes: what the value, or the allocation that is occupied throughout, takes
CREATE VIEW peak_buffers AS
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
WHERE is_peak;

-- How full a memory space is over a module's schedule.
--
-- A row per memory space and stretch of the schedule in which the space's bytes do not change.
--
-- start_time: first time of the stretch
-- end_time: last time of the stretch
-- occupied_bytes: union of the addresses of what is live
-- live_bytes: sum of the sizes of what is live; aliased values count twice
-- instruction: the instruction at start_time
-- op_name: the framework's name of its operation
CREATE VIEW timeline AS
SELECT
    steps.module_id,
    steps.memory_space,
    steps.start_time,
    COALESCE(steps.next_time, modules.schedule_length) - 1 AS end_time,
    steps.occupied_bytes,
    steps.live_bytes,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name
FROM (
    SELECT
        *,
        LEAD(start_time) OVER (PARTITION BY module_id, memory_space ORDER BY start_time)
            AS next_time
    FROM occupancy
) AS steps
INNER JOIN modules ON modules.module_id = steps.module_id
LEFT JOIN instructions
    ON instructions.module_id = steps.module_id
        AND instructions.schedule_time = steps.start_time;
