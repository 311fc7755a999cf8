-- What each instruction says of the values that it makes and of those whose origin it is.
--
-- A row per instruction.
CREATE OR REPLACE VIEW internal.operations AS
SELECT
    module_id,
    instruction_id,
    instruction,
    opcode,
    op_name,
    source_file,
    source_line,
    library_file,
    library_line,
    COALESCE(source_frame_id, stack_frame_id) AS stack_frame_id,
    scope,
    module_path,
    fold,
    operation
FROM instructions
LEFT JOIN scopes USING (module_id, scope_id);

-- The buffers: what takes memory of its own, where and when.
--
-- A row per allocation that is occupied throughout, and per value in a temp allocation. value_id
-- is the value, or the value that the allocation is for: the argument, the result, the constant.
CREATE OR REPLACE VIEW internal.buffer_extents AS
WITH extents AS (
    SELECT
        module_id,
        memory_space,
        space,
        CASE
            WHEN is_parameter THEN 'argument'
            WHEN maybe_live_out THEN 'output'
            WHEN is_constant THEN 'constant'
            ELSE 'other'
        END AS category,
        size_bytes,
        start_time,
        end_time,
        allocation_index,
        0 AS offset_bytes,
        value_id,
        0 AS occupied_from,
        schedule_length AS occupied_to
    FROM allocations
    INNER JOIN modules USING (module_id)
    LEFT JOIN live_ranges USING (module_id, value_id)
    WHERE NOT is_temp AND NOT is_thread_local
    UNION ALL
    SELECT
        live_ranges.module_id,
        allocations.memory_space,
        allocations.space,
        'temp',
        "values".size_bytes,
        start_time,
        end_time,
        allocation_index,
        offset_bytes,
        live_ranges.value_id,
        start_time,
        end_time
    FROM live_ranges
    INNER JOIN "values" USING (module_id, value_id)
    INNER JOIN allocations USING (module_id, allocation_index)
    WHERE is_temp
)

SELECT
    extents.*,
    COALESCE(peak_time BETWEEN occupied_from AND occupied_to, FALSE) AS is_live_at_peak,
    peak_bytes
FROM extents
INNER JOIN module_memory USING (module_id, memory_space);

CREATE OR REPLACE VIEW internal.buffers AS
WITH counted AS (
    SELECT
        *,
        offset_bytes + size_bytes AS end_offset,
        GREATEST(offset_bytes, MAX(end_offset) OVER before) AS covered_to,
        CASE WHEN is_live_at_peak THEN GREATEST(end_offset - covered_to, 0) END
            AS counted_at_peak_bytes
    FROM internal.buffer_extents
    WINDOW before AS (
        PARTITION BY module_id, allocation_index, is_live_at_peak
        ORDER BY offset_bytes, size_bytes DESC, value_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)

SELECT
    counted.module_id,
    counted.memory_space,
    counted.space,
    category,
    counted.size_bytes,
    "values".size_bytes - logical_bytes AS padding_bytes,
    start_time,
    end_time,
    last_use_time,
    is_live_at_peak,
    counted_at_peak_bytes,
    peak_bytes,
    element_type,
    "values".shape,
    held.* EXCLUDE (module_id, instruction_id, instruction, opcode),
    "values".pass,
    role,
    CASE
        WHEN
            category <> 'argument' AND "values".pass = 'argument'
            AND origin_rule NOT IN ('operand', 'weak')
            THEN 'copies of arguments'
        WHEN category = 'other' THEN 'other'
        ELSE category || 's'
    END AS kind,
    residual_id,
    layers,
    held.instruction AS origin_instruction,
    origin_rule,
    made.instruction,
    shape_index,
    made.opcode,
    made.op_name AS made_op_name,
    made.source_file AS made_source_file,
    made.source_line AS made_source_line,
    counted.allocation_index,
    counted.offset_bytes,
    value_id,
    alias_set,
    occupied_from,
    occupied_to
FROM counted
-- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
-- larger side.
LEFT JOIN "values" USING (module_id, value_id)
LEFT JOIN instructions AS made USING (module_id, instruction_id)
LEFT JOIN (SELECT module_id, residual_id, layers FROM residuals) AS stacked
    USING (module_id, residual_id)
LEFT JOIN internal.operations AS held
    ON held.module_id = counted.module_id
        AND held.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id);

CREATE OR REPLACE VIEW buffers AS
SELECT *
FROM internal.dumped
INNER JOIN internal.buffers USING (module_id);
COMMENT ON VIEW buffers IS
'What takes memory in a module, buffer by buffer: when, where, whose it is, and at the peak.

A row per allocation that is occupied throughout, shown by the value that it is for, and a row per
value in a temp allocation. counted_at_peak_bytes add up to the peak: the bytes that aliased
values share count for the first value in address order. op_name, source, scope and operation say
what a buffer holds: the origin. A copy, a loop or a fusion may have made the buffer: instruction,
opcode and the columns made_… say so. Without HLO text the origin is the instruction that makes
the value. A buffer takes memory from occupied_from to occupied_to; the value in it lives from
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
    ROW_NUMBER() OVER ranked AS rank,
    counted_at_peak_bytes AS counted_bytes,
    counted_at_peak_bytes::DOUBLE / NULLIF(peak_bytes, 0) AS share,
    (SUM(counted_at_peak_bytes) OVER ranked)::BIGINT AS running_bytes,
    * EXCLUDE (
        module_id, memory_space, space, counted_at_peak_bytes, peak_bytes, is_live_at_peak,
        residual_id, kind
    ) REPLACE (
        CASE WHEN padding_bytes IS NOT NULL THEN LEAST(padding_bytes, counted_at_peak_bytes) END
            AS padding_bytes
    ),
    residual_id IS NOT NULL AS is_saved_for_backward
FROM internal.buffers
WHERE is_live_at_peak
WINDOW ranked AS (
    PARTITION BY module_id, memory_space
    ORDER BY counted_at_peak_bytes DESC, size_bytes DESC, allocation_index, value_id
    ROWS UNBOUNDED PRECEDING
);

CREATE OR REPLACE VIEW peak_buffers_by_space AS
SELECT *
FROM internal.dumped
INNER JOIN internal.peak_buffers USING (module_id);
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
    occupancy.module_id,
    memory_space,
    space,
    start_time,
    COALESCE(LEAD(start_time) OVER steps, schedule_length) - 1 AS end_time,
    occupied_bytes,
    live_bytes,
    instruction,
    opcode,
    op_name
FROM occupancy
INNER JOIN modules USING (module_id)
LEFT JOIN instructions
    ON instructions.module_id = occupancy.module_id AND schedule_time = start_time
WINDOW steps AS (PARTITION BY occupancy.module_id, memory_space ORDER BY start_time);

CREATE OR REPLACE VIEW timeline_by_space AS
SELECT *
FROM internal.dumped
INNER JOIN internal.timeline USING (module_id);
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
