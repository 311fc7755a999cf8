CREATE OR REPLACE VIEW internal.saved_for_backward AS
SELECT
    residuals.module_id,
    "values".memory_space,
    "values".space,
    residuals.residual_id,
    "values".size_bytes,
    residuals.layers,
    "values".element_type,
    "values".shape,
    made.op_name,
    made.source_file,
    made.source_line,
    made.scope,
    made.operation,
    readers.op_name AS read_op_name,
    readers.source_file AS read_source_file,
    readers.source_line AS read_source_line,
    readers.scope AS read_scope,
    readers.operation AS read_operation,
    residuals.start_time,
    residuals.end_time,
    residuals.idle_start_time,
    residuals.idle_end_time,
    residuals.idle_end_time - residuals.idle_start_time AS idle_time,
    residuals.peak_idle_time,
    COALESCE(
        module_memory.peak_time BETWEEN residuals.start_time AND residuals.end_time, FALSE
    ) AS is_live_at_peak,
    holders.instruction,
    "values".shape_index,
    holders.opcode,
    residuals.value_id
FROM residuals
INNER JOIN "values"
    ON "values".module_id = residuals.module_id
        AND "values".value_id = residuals.value_id
INNER JOIN internal.operations AS made
    ON made.module_id = residuals.module_id
        AND made.instruction_id = residuals.made_instruction_id
INNER JOIN instructions AS holders
    ON holders.module_id = "values".module_id
        AND holders.instruction_id = "values".instruction_id
LEFT JOIN internal.operations AS readers
    ON readers.module_id = residuals.module_id
        AND readers.instruction_id = residuals.read_instruction_id
LEFT JOIN module_memory
    ON module_memory.module_id = residuals.module_id
        AND module_memory.memory_space = "values".memory_space;

CREATE OR REPLACE VIEW saved_for_backward AS
SELECT
    dumped.*,
    saved_for_backward.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.saved_for_backward ON saved_for_backward.module_id = dumped.module_id;
COMMENT ON VIEW saved_for_backward IS
'What the forward pass keeps for the backward pass: candidates for rematerialisation.

A row per tensor that is kept, a residual, with the memory space of its largest value. The best
candidates are large and idle across the peak: large peak_idle_time. What residuals take at the
peak, where copies of one may be live together, is counted_bytes of `peak_buffers` where
is_saved_for_backward.

Key: dump_id, residual_id.';
COMMENT ON COLUMN saved_for_backward.size_bytes IS
'what the largest value that holds the residual takes';
COMMENT ON COLUMN saved_for_backward.layers IS 'how many layers it is stacked over';
COMMENT ON COLUMN saved_for_backward.read_op_name IS
'the framework''s name of what reads it first in the backward pass';
COMMENT ON COLUMN saved_for_backward.read_source_file IS
'the Python file of the line that reads it';
COMMENT ON COLUMN saved_for_backward.read_source_line IS 'that line';
COMMENT ON COLUMN saved_for_backward.read_scope IS 'the scope of what reads it';
COMMENT ON COLUMN saved_for_backward.read_operation IS 'the operation that reads it';
COMMENT ON COLUMN saved_for_backward.idle_start_time IS
'the last touch before the longest stretch in which nothing reads or writes it';
COMMENT ON COLUMN saved_for_backward.idle_end_time IS
'the first touch after that stretch, see idle_time';

CREATE OR REPLACE VIEW internal.long_lived AS
WITH scheduled AS (
    SELECT DISTINCT module_id FROM alias_sets
),

held AS (
    SELECT
        module_id,
        value_id,
        residual_id,
        start_time,
        end_time,
        idle_end_time - idle_start_time AS idle_time,
        peak_idle_time
    FROM residuals
    UNION ALL
    SELECT
        module_id,
        value_id,
        NULL,
        start_time,
        end_time,
        idle_end_time - idle_start_time,
        peak_idle_time
    FROM alias_sets
    UNION ALL
    SELECT
        "values".module_id,
        "values".value_id,
        NULL,
        live_ranges.start_time,
        live_ranges.end_time,
        NULL,
        NULL
    FROM "values"
    INNER JOIN allocations
        ON allocations.module_id = "values".module_id
            AND allocations.allocation_index = "values".allocation_index
    INNER JOIN live_ranges
        ON live_ranges.module_id = "values".module_id
            AND live_ranges.value_id = "values".value_id
    LEFT JOIN scheduled ON scheduled.module_id = "values".module_id
    WHERE allocations.is_temp
        AND ("values".alias_set IS NULL OR scheduled.module_id IS NULL)
)

SELECT
    held.module_id,
    "values".memory_space,
    "values".space,
    held.value_id,
    made.instruction,
    "values".shape_index,
    made.opcode,
    "values".element_type,
    "values".shape,
    "values".size_bytes,
    held.start_time,
    held.end_time,
    held.end_time - held.start_time + 1 AS life,
    "values".size_bytes * (held.end_time - held.start_time + 1) AS byte_steps,
    held.idle_time,
    "values".size_bytes * held.idle_time AS idle_byte_steps,
    held.peak_idle_time,
    COALESCE(module_memory.peak_time BETWEEN held.start_time AND held.end_time, FALSE)
        AS is_live_at_peak,
    held.residual_id IS NOT NULL AS is_saved_for_backward,
    held.residual_id,
    origins.op_name,
    origins.source_file,
    origins.source_line,
    origins.scope,
    origins.operation,
    "values".pass
FROM held
-- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
-- larger side.
LEFT JOIN "values"
    ON "values".module_id = held.module_id
        AND "values".value_id = held.value_id
LEFT JOIN instructions AS made
    ON made.module_id = held.module_id
        AND made.instruction_id = "values".instruction_id
LEFT JOIN internal.operations AS origins
    ON origins.module_id = held.module_id
        AND origins.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
LEFT JOIN module_memory
    ON module_memory.module_id = held.module_id
        AND module_memory.memory_space = "values".memory_space
-- A set that a residual's value leads has the residual's row alone.
WHERE held.residual_id IS NOT NULL OR "values".residual_id IS NULL;

CREATE OR REPLACE VIEW long_lived AS
SELECT
    dumped.*,
    long_lived.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.long_lived ON long_lived.module_id = dumped.module_id;
COMMENT ON VIEW long_lived IS
'Which temp buffers hold much memory for long: candidates for rematerialisation.

A row per residual (all copies of a tensor that the forward pass keeps for the backward pass) and
per other buffer (all values that must share it) in a temp allocation. The best candidates are
large and unused across the peak: large size_bytes and peak_idle_time. A loop''s body touches what
it reads in every iteration. Without scheduled HLO text each value has a row of its own, and what
is idle is not known.

Key: dump_id, value_id.';
COMMENT ON COLUMN long_lived.value_id IS 'the largest value of the buffer, see `values`';
COMMENT ON COLUMN long_lived.size_bytes IS 'what this value takes';
COMMENT ON COLUMN long_lived.life IS 'end_time - start_time + 1';
COMMENT ON COLUMN long_lived.byte_steps IS 'size_bytes x life';
COMMENT ON COLUMN long_lived.idle_byte_steps IS 'size_bytes x idle_time';
