CREATE OR REPLACE VIEW internal.saved_for_backward AS
SELECT
    module_id,
    memory_space,
    "values".space,
    residuals.residual_id,
    size_bytes,
    layers,
    element_type,
    "values".shape,
    made.* EXCLUDE (
        module_id, instruction_id, instruction, opcode, library_file, library_line, stack_frame_id,
        module_path, fold
    ),
    readers.op_name AS read_op_name,
    readers.source_file AS read_source_file,
    readers.source_line AS read_source_line,
    readers.scope AS read_scope,
    readers.operation AS read_operation,
    start_time,
    end_time,
    idle_start_time,
    idle_end_time,
    idle_end_time - idle_start_time AS idle_time,
    peak_idle_time,
    COALESCE(peak_time BETWEEN start_time AND end_time, FALSE) AS is_live_at_peak,
    holders.instruction,
    shape_index,
    holders.opcode,
    value_id
FROM residuals
INNER JOIN "values" USING (module_id, value_id)
INNER JOIN instructions AS holders USING (module_id, instruction_id)
INNER JOIN internal.operations AS made
    ON made.module_id = residuals.module_id AND made.instruction_id = made_instruction_id
LEFT JOIN internal.operations AS readers
    ON readers.module_id = residuals.module_id AND readers.instruction_id = read_instruction_id
LEFT JOIN module_memory USING (module_id, memory_space);

CREATE OR REPLACE VIEW saved_for_backward AS
SELECT *
FROM internal.dumped
INNER JOIN internal.saved_for_backward USING (module_id);
COMMENT ON VIEW saved_for_backward IS
'What the forward pass keeps for the backward pass: candidates for rematerialisation.

A row per tensor that is kept, a residual, with the memory space of its largest value. One that XLA
also copies to another memory space for the backward pass is a residual of each. The best candidates are large and idle across the peak: large peak_idle_time. What residuals take at the
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

touched AS (
    SELECT * EXCLUDE (layers, made_instruction_id, read_instruction_id) FROM residuals
    UNION ALL BY NAME
    SELECT * EXCLUDE (alias_set) FROM alias_sets
),

held AS (
    SELECT *, idle_end_time - idle_start_time AS idle_time FROM touched
    UNION ALL BY NAME
    SELECT live_ranges.*
    FROM "values"
    INNER JOIN allocations USING (module_id, allocation_index)
    INNER JOIN live_ranges
        ON live_ranges.module_id = "values".module_id AND live_ranges.value_id = "values".value_id
    LEFT JOIN scheduled ON scheduled.module_id = "values".module_id
    WHERE is_temp AND (alias_set IS NULL OR scheduled.module_id IS NULL)
)

SELECT
    held.module_id,
    "values".memory_space,
    "values".space,
    value_id,
    made.instruction,
    shape_index,
    made.opcode,
    element_type,
    "values".shape,
    size_bytes,
    start_time,
    end_time,
    end_time - start_time + 1 AS life,
    size_bytes * life AS byte_steps,
    idle_time,
    size_bytes * idle_time AS idle_byte_steps,
    peak_idle_time,
    COALESCE(peak_time BETWEEN start_time AND end_time, FALSE) AS is_live_at_peak,
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
LEFT JOIN "values" USING (module_id, value_id)
LEFT JOIN instructions AS made USING (module_id, instruction_id)
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
SELECT *
FROM internal.dumped
INNER JOIN internal.long_lived USING (module_id);
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
