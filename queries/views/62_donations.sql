-- The rows of `donations` with their arrays. The views of donations need HLO text.
CREATE OR REPLACE VIEW internal.donated_arrays AS
SELECT
    donations.*,
    "values".memory_space,
    "values".space,
    argument.argument_name,
    argument.shape,
    argument.padded_bytes AS size_bytes,
    output.shape AS output_shape,
    output.padded_bytes AS output_bytes,
    output.value_id AS output_value_id
FROM donations
INNER JOIN entry_shapes AS argument
    ON argument.module_id = donations.module_id
        AND argument.parameter_number = donations.parameter_number
        AND argument.shape_index = donations.parameter_shape_index
INNER JOIN "values"
    ON "values".module_id = argument.module_id AND "values".value_id = argument.value_id
LEFT JOIN entry_shapes AS output
    ON output.module_id = donations.module_id
        AND output.is_output
        AND output.shape_index = donations.output_shape_index;

CREATE OR REPLACE VIEW internal.missed_donations AS
SELECT
    arrays.module_id,
    arrays.memory_space,
    arrays.space,
    arrays.parameter_number,
    arrays.parameter_shape_index,
    arrays.argument_name,
    arrays.shape,
    arrays.size_bytes,
    LEAST(arrays.size_bytes, arrays.output_bytes) AS saving_bound_bytes,
    arrays.paired_by,
    late_readers.instruction AS read_later_by,
    arrays.output_shape_index,
    arrays.output_shape,
    instructions.instruction AS output_instruction,
    "values".allocation_index AS output_allocation_index
FROM internal.donated_arrays AS arrays
INNER JOIN "values"
    ON "values".module_id = arrays.module_id AND "values".value_id = arrays.output_value_id
INNER JOIN instructions
    ON instructions.module_id = arrays.module_id
        AND instructions.instruction_id = "values".instruction_id
LEFT JOIN instructions AS late_readers
    ON late_readers.module_id = arrays.module_id
        AND late_readers.instruction_id = arrays.late_reader_instruction_id
WHERE arrays.paired_by <> 'header';

CREATE OR REPLACE VIEW missed_donations AS
SELECT *
FROM internal.dumped
INNER JOIN internal.missed_donations USING (module_id);
COMMENT ON VIEW missed_donations IS
'Which arguments could have been donated: an output takes memory of its own that fits them.

A row per argument and the output that could take its place, one output for one argument. Donate
them with `donate_argnums` or `donate_argnames` of `jax.jit`. JAX pairs donated arguments with
results of equal element type and dimensions, in their order. What is left over XLA pairs by equal
bytes; JAX lets it do so only for an equal number of elements, unless the program is partitioned.
A program without HLO text, whose `modules`.flops is null, has no rows: what it could donate is
not known.

Key: dump_id, parameter_number, parameter_shape_index.';
COMMENT ON COLUMN missed_donations.saving_bound_bytes IS
'what donating it saves at most: an output''s memory also holds other values before the output, and
XLA may have to copy the argument';
COMMENT ON COLUMN missed_donations.paired_by IS 'shape: JAX pairs the two; bytes: XLA does';
COMMENT ON COLUMN missed_donations.read_later_by IS
'the last instruction that reads the argument after the output''s memory is first written, in this
schedule. XLA then copies the argument, which saves nothing, unless it can run the instruction
earlier. Null if none: XLA still copies it if output_instruction itself reads it otherwise than
element by element, as a dot or a kernel does';
COMMENT ON COLUMN missed_donations.output_shape IS 'the shape of the output';
COMMENT ON COLUMN missed_donations.output_instruction IS 'the instruction that computes the output';
COMMENT ON COLUMN missed_donations.output_allocation_index IS
'the allocation that would not be needed';

CREATE OR REPLACE VIEW internal.wasted_donations AS
SELECT
    arrays.module_id,
    arrays.memory_space,
    arrays.space,
    arrays.parameter_number,
    arrays.parameter_shape_index,
    arrays.argument_name,
    arrays.shape,
    arrays.size_bytes,
    CASE WHEN arrays.output_shape_index IS NULL THEN 'unused' ELSE 'copied' END AS why,
    arrays.output_shape_index,
    instructions.instruction AS copy_instruction,
    "values".size_bytes AS copied_bytes,
    COALESCE(
        module_memory.peak_time BETWEEN live_ranges.start_time AND live_ranges.end_time, FALSE
    ) AS is_live_at_peak
FROM internal.donated_arrays AS arrays
LEFT JOIN donation_copies USING (module_id, parameter_number, parameter_shape_index)
LEFT JOIN instructions USING (module_id, instruction_id)
LEFT JOIN "values"
    ON "values".module_id = arrays.module_id
        AND "values".value_id = donation_copies.other_value_id
LEFT JOIN live_ranges
    ON live_ranges.module_id = arrays.module_id
        AND live_ranges.value_id = donation_copies.other_value_id
LEFT JOIN module_memory
    ON module_memory.module_id = arrays.module_id
        AND module_memory.memory_space = arrays.memory_space
WHERE
    arrays.paired_by = 'header'
    AND (arrays.output_shape_index IS NULL OR donation_copies.instruction_id IS NOT NULL);

CREATE OR REPLACE VIEW wasted_donations AS
SELECT *
FROM internal.dumped
INNER JOIN internal.wasted_donations USING (module_id);
COMMENT ON VIEW wasted_donations IS
'Which donated arguments XLA copies all the same, and which no output takes.

A row per donated argument that no output takes, and per copy that XLA makes of a donated
argument, or of what becomes the output in its memory. XLA copies an argument that an instruction
still reads after the output is written, or that the output is not computed from element by
element. Such a donation saves less, but not nothing, where the copy is not live at the peak. A
copy to another memory space or layout is not counted. Needs HLO text.

Key: dump_id, parameter_number, parameter_shape_index, copy_instruction.';
COMMENT ON COLUMN wasted_donations.why IS
'copied: XLA copies it; unused: no output takes its memory';
COMMENT ON COLUMN wasted_donations.copy_instruction IS 'the copy';
COMMENT ON COLUMN wasted_donations.copied_bytes IS
'what the copy takes beside the argument''s memory';
COMMENT ON COLUMN wasted_donations.is_live_at_peak IS
'the copied bytes are there when the memory space is fullest';
