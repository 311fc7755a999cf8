-- What each instruction says of the values that it makes and of those whose origin it is.
--
-- A row per instruction.
CREATE OR REPLACE VIEW internal.operations AS
SELECT
    instructions.module_id,
    instructions.instruction_id,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line,
    instructions.library_file,
    instructions.library_line,
    COALESCE(instructions.source_frame_id, instructions.stack_frame_id) AS stack_frame_id,
    scopes.scope,
    -- What an older memhouse stored has the scope alone.
    COALESCE(scopes.module_path, scopes.scope) AS module_path,
    COALESCE(scopes.fold, scopes.scope) AS fold,
    scopes.operation
FROM instructions
LEFT JOIN scopes
    ON scopes.module_id = instructions.module_id
        AND scopes.scope_id = instructions.scope_id;

-- The buffers: what takes memory of its own, where and when.
--
-- A row per allocation that is occupied throughout, and per value in a temp allocation. value_id
-- is the value, or the value that the allocation is for: the argument, the result, the constant.
CREATE OR REPLACE VIEW internal.buffer_extents AS
SELECT
    allocations.module_id,
    allocations.memory_space,
    allocations.space,
    allocations.allocation_index,
    CASE
        WHEN allocations.is_parameter THEN 'argument'
        WHEN allocations.maybe_live_out THEN 'output'
        WHEN allocations.is_constant THEN 'constant'
        ELSE 'other'
    END AS category,
    allocations.size_bytes,
    0 AS offset_bytes,
    0 AS taken_from,
    modules.schedule_length AS taken_to,
    live_ranges.start_time,
    live_ranges.end_time,
    allocations.value_id,
    COALESCE(module_memory.peak_time BETWEEN 0 AND modules.schedule_length, FALSE)
        AS is_live_at_peak,
    module_memory.peak_bytes
FROM allocations
INNER JOIN modules ON modules.module_id = allocations.module_id
INNER JOIN module_memory
    ON module_memory.module_id = allocations.module_id
        AND module_memory.memory_space = allocations.memory_space
LEFT JOIN live_ranges
    ON live_ranges.module_id = allocations.module_id
        AND live_ranges.value_id = allocations.value_id
WHERE NOT allocations.is_temp AND NOT allocations.is_thread_local
UNION ALL
SELECT
    live_ranges.module_id,
    allocations.memory_space,
    allocations.space,
    allocations.allocation_index,
    'temp',
    "values".size_bytes,
    "values".offset_bytes,
    live_ranges.start_time,
    live_ranges.end_time,
    live_ranges.start_time,
    live_ranges.end_time,
    live_ranges.value_id,
    COALESCE(
        module_memory.peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time, FALSE
    ),
    module_memory.peak_bytes
FROM live_ranges
INNER JOIN "values"
    ON "values".module_id = live_ranges.module_id
        AND "values".value_id = live_ranges.value_id
INNER JOIN allocations
    ON allocations.module_id = "values".module_id
        AND allocations.allocation_index = "values".allocation_index
INNER JOIN module_memory
    ON module_memory.module_id = allocations.module_id
        AND module_memory.memory_space = allocations.memory_space
WHERE allocations.is_temp;

CREATE OR REPLACE VIEW internal.buffers AS
WITH counted AS (
    SELECT
        *,
        CASE WHEN is_live_at_peak
                THEN
                    GREATEST(
                        offset_bytes + size_bytes - GREATEST(
                            offset_bytes,
                            COALESCE(
                                MAX(offset_bytes + size_bytes) OVER (
                                    PARTITION BY module_id, allocation_index, is_live_at_peak
                                    ORDER BY offset_bytes, size_bytes DESC, value_id
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                                ),
                                0
                            )
                        ),
                        0
                    )
        END AS counted_at_peak_bytes
    FROM internal.buffer_extents
)

SELECT
    counted.module_id,
    counted.memory_space,
    counted.space,
    counted.category,
    counted.size_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    counted.start_time,
    counted.end_time,
    "values".last_use_time,
    counted.is_live_at_peak,
    counted.counted_at_peak_bytes,
    counted.peak_bytes,
    "values".element_type,
    "values".shape,
    held.op_name,
    held.source_file,
    held.source_line,
    held.library_file,
    held.library_line,
    held.stack_frame_id,
    held.scope,
    held.module_path,
    held.fold,
    held.operation,
    "values".pass,
    "values".role,
    CASE
        WHEN counted.category <> 'argument' AND "values".pass = 'argument'
            AND "values".origin_rule NOT IN ('operand', 'weak')
            THEN 'copies of arguments'
        WHEN counted.category = 'other' THEN 'other'
        ELSE counted.category || 's'
    END AS kind,
    "values".residual_id,
    held.instruction AS origin_instruction,
    "values".origin_rule,
    made.instruction,
    "values".shape_index,
    made.opcode,
    made.op_name AS made_op_name,
    made.source_file AS made_source_file,
    made.source_line AS made_source_line,
    counted.allocation_index,
    counted.offset_bytes,
    counted.value_id,
    counted.taken_from,
    counted.taken_to
FROM counted
-- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
-- larger side.
LEFT JOIN "values"
    ON "values".module_id = counted.module_id
        AND "values".value_id = counted.value_id
LEFT JOIN instructions AS made
    ON made.module_id = counted.module_id
        AND made.instruction_id = "values".instruction_id
LEFT JOIN internal.operations AS held
    ON held.module_id = counted.module_id
        AND held.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id);

CREATE OR REPLACE VIEW buffers AS
SELECT
    dumped.*,
    buffers.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.buffers ON buffers.module_id = dumped.module_id;
COMMENT ON VIEW buffers IS
'What takes memory in a module, buffer by buffer: when, where, whose it is, and at the peak.

A row per allocation that is occupied throughout, shown by the value that it is for, and a row per
value in a temp allocation. counted_at_peak_bytes add up to the peak: the bytes that aliased
values share count for the first value in address order. op_name, source, scope and operation say
what a buffer holds: the origin. A copy, a loop or a fusion may have made the buffer: instruction,
opcode and the columns made_… say so. Without HLO text the origin is the instruction that makes
the value. A buffer takes memory from taken_from to taken_to; the value in it lives from
start_time to end_time. Arguments, outputs and constants take memory throughout, also while no
value lives in them. To ask for the peak alone, filter on is_live_at_peak.

Key: dump_id, allocation_index, value_id.';
COMMENT ON COLUMN buffers.padding_bytes IS 'what tiling adds to the value''s logical size';
COMMENT ON COLUMN buffers.counted_at_peak_bytes IS
'the part of the buffer''s extent that no other before it in address order covers at the peak; null
if it is not live then';
COMMENT ON COLUMN buffers.kind IS
'arguments, copies of arguments, outputs, constants, temps or other: what to call the buffer where
the program has no name for it';

CREATE OR REPLACE VIEW internal.peak_buffers AS
SELECT
    module_id,
    memory_space,
    space,
    ROW_NUMBER() OVER (
        PARTITION BY module_id, memory_space
        ORDER BY counted_at_peak_bytes DESC, size_bytes DESC, allocation_index, value_id
    ) AS rank,
    counted_at_peak_bytes AS counted_bytes,
    CAST(counted_at_peak_bytes AS DOUBLE) / NULLIF(peak_bytes, 0) AS share,
    CAST(
        SUM(counted_at_peak_bytes) OVER (
            PARTITION BY module_id, memory_space
            ORDER BY counted_at_peak_bytes DESC, size_bytes DESC, allocation_index, value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT
    ) AS running_bytes,
    category,
    size_bytes,
    CASE WHEN padding_bytes IS NOT NULL THEN LEAST(padding_bytes, counted_at_peak_bytes) END
        AS padding_bytes,
    element_type,
    shape,
    op_name,
    source_file,
    source_line,
    library_file,
    library_line,
    stack_frame_id,
    scope,
    module_path,
    fold,
    operation,
    pass,
    role,
    residual_id IS NOT NULL AS is_saved_for_backward,
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
    value_id,
    taken_from,
    taken_to
FROM internal.buffers
WHERE is_live_at_peak;

CREATE OR REPLACE VIEW peak_buffers_by_space AS
SELECT
    dumped.*,
    peak_buffers.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.peak_buffers ON peak_buffers.module_id = dumped.module_id;
COMMENT ON VIEW peak_buffers_by_space IS
'What fills a memory space at its peak, buffer by buffer.

A row per row of `buffers` that is live at the peak: how to read the columns is said there.
counted_bytes add up to the peak: the bytes that aliased values share count for the first value in
address order.

Key: dump_id, memory_space, rank.';
COMMENT ON COLUMN peak_buffers_by_space.rank IS '1 for the buffer that counts most';
COMMENT ON COLUMN peak_buffers_by_space.counted_bytes IS
'the part of the buffer''s extent that no row before it in address order covers';
COMMENT ON COLUMN peak_buffers_by_space.running_bytes IS
'counted_bytes of this and all higher ranks';

CREATE OR REPLACE VIEW peak_buffers AS
SELECT * EXCLUDE (memory_space)
FROM peak_buffers_by_space
WHERE memory_space = 0;
COMMENT ON VIEW peak_buffers IS
'What takes the main memory when it is fullest, buffer by buffer.

A row per buffer that is live at the peak; counted_bytes add up to the peak. Other memory spaces
are in `peak_buffers_by_space`.

Key: dump_id, allocation_index, value_id.';
COMMENT ON COLUMN peak_buffers.rank IS '1 for the buffer that counts most';
COMMENT ON COLUMN peak_buffers.counted_bytes IS
'the part of the buffer''s extent that no row before it in address order covers';
COMMENT ON COLUMN peak_buffers.running_bytes IS 'counted_bytes of this and all higher ranks';

CREATE OR REPLACE VIEW internal.timeline AS
SELECT
    steps.module_id,
    steps.memory_space,
    steps.space,
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

CREATE OR REPLACE VIEW timeline_by_space AS
SELECT
    dumped.*,
    timeline.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.timeline ON timeline.module_id = dumped.module_id;
COMMENT ON VIEW timeline_by_space IS
'How full a memory space is over a module''s schedule.

A row per memory space and stretch of the schedule in which the space''s bytes do not change.

Key: dump_id, memory_space, start_time.';
COMMENT ON COLUMN timeline_by_space.start_time IS 'first time of the stretch';
COMMENT ON COLUMN timeline_by_space.end_time IS 'last time of the stretch';
COMMENT ON COLUMN timeline_by_space.occupied_bytes IS 'union of the addresses of what is live';
COMMENT ON COLUMN timeline_by_space.live_bytes IS
'sum of the sizes of what is live; aliased values count twice';
COMMENT ON COLUMN timeline_by_space.instruction IS 'the instruction at start_time';
COMMENT ON COLUMN timeline_by_space.op_name IS 'the framework''s name of its operation';

CREATE OR REPLACE VIEW timeline AS
SELECT * EXCLUDE (memory_space)
FROM timeline_by_space
WHERE memory_space = 0;
COMMENT ON VIEW timeline IS
'How full the main memory is over the schedule.

A row per dump and stretch of the schedule without a change. Other memory spaces are in
`timeline_by_space`.

Key: dump_id, start_time.';
COMMENT ON COLUMN timeline.start_time IS 'first time of the stretch';
COMMENT ON COLUMN timeline.end_time IS 'last time of the stretch';
COMMENT ON COLUMN timeline.occupied_bytes IS 'union of the addresses of what is live';
COMMENT ON COLUMN timeline.live_bytes IS
'sum of the sizes of what is live; aliased values count twice';
COMMENT ON COLUMN timeline.instruction IS 'the instruction at start_time';
COMMENT ON COLUMN timeline.op_name IS 'the framework''s name of its operation';
