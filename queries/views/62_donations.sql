-- The arrays of the entry computation's arguments and result, with the values that they are.
--
-- A row per array of an argument or of the result. An output's value is the one that stands at
-- the root of the entry computation, so that a bitcast in between makes no difference. The view
-- needs HLO text.
CREATE OR REPLACE VIEW internal.entry_arrays AS
WITH pairs AS (
    -- A row per `{0}: (3, {1}, may-alias)` of the header: the texts `{0}`, `3` and `1`.
    SELECT
        module_id,
        SPLIT_PART(pair, ':(', 1) AS output_index,
        SPLIT_PART(SPLIT_PART(pair, ':(', 2), ',', 1) AS parameter_number,
        SPLIT_PART(SPLIT_PART(SPLIT_PART(pair, ':(', 2), '{', 2), '}', 1) AS argument_index
    FROM (
        SELECT
            module_id,
            UNNEST(STRING_SPLIT(REPLACE(input_output_alias, ' ', ''), '),')) AS pair
        FROM modules
        WHERE input_output_alias <> ''
    ) AS texts
),

-- Each pair twice: as its output finds it, and as its argument does.
aliases AS (
    SELECT
        pairs.module_id,
        sides.is_output,
        CASE
            WHEN sides.is_output THEN pairs.output_index
            ELSE pairs.parameter_number || '{' || pairs.argument_index || '}'
        END AS found_by,
        pairs.parameter_number || '{' || pairs.argument_index || '}' AS argument
    FROM pairs
    CROSS JOIN (
        SELECT TRUE AS is_output
        UNION ALL SELECT FALSE
    ) AS sides
),

-- The root lives out, and no instruction uses it.
roots AS (
    SELECT
        instructions.module_id,
        instructions.instruction_id
    FROM instructions
    INNER JOIN computations
        ON computations.module_id = instructions.module_id
            AND computations.computation = instructions.computation
    INNER JOIN positions
        ON positions.module_id = instructions.module_id
            AND positions.instruction_id = instructions.instruction_id
    INNER JOIN live_ranges
        ON live_ranges.module_id = positions.module_id
            AND live_ranges.value_id = positions.value_id
    INNER JOIN modules
        ON modules.module_id = instructions.module_id
            AND modules.schedule_length = live_ranges.end_time
    LEFT JOIN operands
        ON operands.module_id = instructions.module_id
            AND operands.operand_instruction_id = instructions.instruction_id
    WHERE
        computations.is_entry
        AND instructions.opcode NOT IN ('parameter', 'constant')
        AND positions.shape_index = '{}'
        AND operands.instruction_id IS NULL
),

standing AS (
    SELECT
        roots.module_id,
        TRUE AS is_output,
        CAST(NULL AS INTEGER) AS parameter_number,
        positions.shape_index,
        positions.value_id
    FROM roots
    INNER JOIN positions
        ON positions.module_id = roots.module_id
            AND positions.instruction_id = roots.instruction_id
    UNION ALL
    SELECT
        module_id,
        FALSE,
        parameter_number,
        parameter_shape_index,
        value_id
    FROM allocations
    WHERE is_parameter AND value_id IS NOT NULL
),

-- A loop writes its results into the memory of their initial values. Left joins, so that the few
-- loops come first.
initial AS (
    SELECT
        whiles.module_id,
        whiles.instruction_id,
        positions.shape_index,
        MIN(live_ranges.start_time) AS start_time
    FROM instructions AS whiles
    LEFT JOIN operands
        ON operands.module_id = whiles.module_id
            AND operands.instruction_id = whiles.instruction_id
    LEFT JOIN positions
        ON positions.module_id = whiles.module_id
            AND positions.instruction_id = operands.operand_instruction_id
    LEFT JOIN live_ranges
        ON live_ranges.module_id = whiles.module_id
            AND live_ranges.value_id = positions.value_id
    WHERE whiles.opcode = 'while'
    GROUP BY whiles.module_id, whiles.instruction_id, positions.shape_index
),

arrays AS (
    SELECT
        standing.*,
        entry_shapes.element_type,
        -- `bf16[8,128]{1,0}` is `8,128`.
        SPLIT_PART(SPLIT_PART(entry_shapes.shape, '[', 2), ']', 1) AS dimensions,
        entry_shapes.shape,
        entry_shapes.logical_bytes,
        entry_shapes.padded_bytes,
        modules.num_partitions,
        modules.buffer_donor,
        CASE
            WHEN standing.is_output THEN standing.shape_index
            ELSE standing.parameter_number || standing.shape_index
        END AS found_by
    FROM standing
    INNER JOIN modules ON modules.module_id = standing.module_id
    INNER JOIN entry_shapes
        ON entry_shapes.module_id = standing.module_id
            AND entry_shapes.is_output = standing.is_output
            AND entry_shapes.shape_index = standing.shape_index
            AND COALESCE(entry_shapes.parameter_number, -1)
            = COALESCE(standing.parameter_number, -1)
)

SELECT
    arrays.module_id,
    "values".memory_space,
    "values".space,
    arrays.is_output,
    arrays.parameter_number,
    arrays.shape_index,
    ROW_NUMBER() OVER (
        PARTITION BY arrays.module_id, arrays.is_output
        -- An index such as `{10}` comes after `{9}`.
        ORDER BY arrays.parameter_number, LENGTH(arrays.shape_index), arrays.shape_index
    ) AS place,
    arrays.element_type,
    arrays.dimensions,
    CAST(
        COALESCE(NULLIF(REGEXP_EXTRACT(arrays.element_type, '[0-9]+'), ''), '0') AS INTEGER
    ) AS element_bits,
    arrays.shape,
    arrays.logical_bytes,
    arrays.padded_bytes,
    COALESCE(
        (allocations.is_parameter AND allocations.maybe_live_out)
        OR aliases.module_id IS NOT NULL,
        FALSE
    ) AS is_shared,
    CASE WHEN arrays.is_output THEN aliases.argument ELSE arrays.found_by END AS argument,
    NOT arrays.is_output
    AND COALESCE(
        POSITION(
            '(' || arrays.parameter_number || ',' || arrays.shape_index || ')'
            IN REPLACE(arrays.buffer_donor, ' ', '')
        ) > 0,
        FALSE
    ) AS is_donor,
    arrays.num_partitions AS partitions,
    arrays.value_id,
    "values".allocation_index,
    "values".instruction_id,
    made.instruction,
    made.opcode,
    held.op_name,
    COALESCE(initial.start_time, live_ranges.start_time) AS start_time,
    live_ranges.end_time
FROM arrays
-- Each join with a value or an instruction finds its row. As inner joins DuckDB would expect few
-- rows of them, and hash the larger side.
LEFT JOIN "values"
    ON "values".module_id = arrays.module_id
        AND "values".value_id = arrays.value_id
LEFT JOIN live_ranges
    ON live_ranges.module_id = arrays.module_id
        AND live_ranges.value_id = arrays.value_id
LEFT JOIN instructions AS made
    ON made.module_id = arrays.module_id
        AND made.instruction_id = "values".instruction_id
LEFT JOIN instructions AS held
    ON held.module_id = arrays.module_id
        AND held.instruction_id
        = COALESCE("values".origin_instruction_id, "values".instruction_id)
LEFT JOIN aliases
    ON aliases.module_id = arrays.module_id
        AND aliases.is_output = arrays.is_output
        AND aliases.found_by = arrays.found_by
LEFT JOIN allocations
    ON allocations.module_id = arrays.module_id
        AND allocations.allocation_index = "values".allocation_index
LEFT JOIN initial
    ON initial.module_id = arrays.module_id
        AND initial.instruction_id = "values".instruction_id
        AND initial.shape_index = "values".shape_index
WHERE arrays.element_type NOT IN ('token', 'opaque');

CREATE OR REPLACE VIEW internal.missed_donations AS
WITH free AS (
    SELECT
        *,
        CASE WHEN partitions > 1 THEN '' ELSE logical_bytes || '/' || element_bits END AS elements,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, memory_space, element_type, dimensions, is_output
            ORDER BY place
        ) AS nth
    FROM internal.entry_arrays
    WHERE NOT is_shared AND NOT is_donor
),

by_shape AS (
    SELECT
        *,
        -- An argument and an output are there.
        COUNT(*) OVER (
            PARTITION BY module_id, memory_space, element_type, dimensions, nth
        ) = 2 AS is_paired
    FROM free
),

left_over AS (
    SELECT
        *,
        CASE WHEN is_paired THEN 'shape' ELSE 'bytes' END AS paired_by,
        CASE
            WHEN is_paired THEN element_type || '[' || dimensions || ']' ELSE elements
        END AS fits,
        CASE
            WHEN is_paired THEN nth
            ELSE ROW_NUMBER() OVER (
                    PARTITION BY
                        module_id, memory_space, padded_bytes, elements, is_output, is_paired
                    ORDER BY place
                )
        END AS pair_number
    FROM by_shape
),

paired AS (
    SELECT
        *,
        MAX(CASE WHEN is_output THEN padded_bytes END) OVER pair AS output_bytes,
        MAX(CASE WHEN is_output THEN start_time END) OVER pair AS output_time,
        MAX(CASE WHEN is_output THEN shape_index END) OVER pair AS output_shape_index,
        MAX(CASE WHEN is_output THEN shape END) OVER pair AS output_shape,
        MAX(CASE WHEN is_output THEN instruction END) OVER pair AS output_instruction,
        MAX(CASE WHEN is_output THEN allocation_index END) OVER pair AS output_allocation_index
    FROM left_over
    WINDOW pair AS (
        PARTITION BY
            module_id, memory_space, paired_by, fits, pair_number,
            -- Of a pair of one shape the layouts may differ.
            CASE WHEN paired_by = 'bytes' THEN padded_bytes END
    )
),

arguments AS (
    SELECT
        "values".module_id,
        "values".value_id
    FROM allocations
    INNER JOIN "values"
        ON "values".module_id = allocations.module_id
            AND "values".allocation_index = allocations.allocation_index
    WHERE allocations.is_parameter
),

-- What only passes an argument on does not read it.
reads AS (
    SELECT
        arguments.module_id,
        arguments.value_id,
        MAX(
            CASE
                WHEN instructions.opcode
                    NOT IN ('bitcast', 'tuple', 'get-tuple-element', 'opt-barrier')
                    THEN instructions.schedule_time
            END
        ) AS last_time
    FROM arguments
    LEFT JOIN uses
        ON uses.module_id = arguments.module_id
            AND uses.value_id = arguments.value_id
    LEFT JOIN instructions
        ON instructions.module_id = arguments.module_id
            AND instructions.instruction_id = uses.instruction_id
    GROUP BY arguments.module_id, arguments.value_id
)

SELECT
    paired.module_id,
    paired.memory_space,
    paired.space,
    paired.parameter_number,
    paired.shape_index AS parameter_shape_index,
    paired.op_name AS argument_name,
    paired.shape,
    paired.padded_bytes AS size_bytes,
    LEAST(paired.padded_bytes, paired.output_bytes) AS saving_bound_bytes,
    paired.paired_by,
    last_reads.instruction AS read_later_by,
    paired.output_shape_index,
    paired.output_shape,
    paired.output_instruction,
    paired.output_allocation_index
FROM paired
LEFT JOIN reads
    ON reads.module_id = paired.module_id
        AND reads.value_id = paired.value_id
LEFT JOIN instructions AS last_reads
    ON last_reads.module_id = paired.module_id
        AND last_reads.schedule_time = reads.last_time
        AND reads.last_time > paired.output_time
WHERE
    NOT paired.is_output
    AND paired.output_shape_index IS NOT NULL
    AND paired.padded_bytes IS NOT NULL;

CREATE OR REPLACE VIEW missed_donations AS
SELECT
    dumped.*,
    missed_donations.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.missed_donations ON missed_donations.module_id = dumped.module_id;
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
WITH sides AS (
    SELECT TRUE AS is_argument
    UNION ALL SELECT FALSE
),

-- Each argument with the output in its memory.
shared AS (
    SELECT
        *,
        MAX(CASE WHEN is_output THEN shape_index END) OVER pair AS output_shape_index,
        MAX(CASE WHEN is_output THEN value_id END) OVER pair AS output_value_id
    FROM internal.entry_arrays
    WINDOW pair AS (PARTITION BY module_id, argument)
),

donated AS (
    SELECT
        shared.*,
        sides.is_argument,
        CASE
            WHEN sides.is_argument THEN shared.value_id ELSE shared.output_value_id
        END AS copied_value_id
    FROM shared
    CROSS JOIN sides
    WHERE
        NOT shared.is_output
        AND (
            shared.output_value_id IS NOT NULL
            OR (shared.is_donor AND NOT shared.is_shared AND sides.is_argument)
        )
),

-- Every copy within a memory space, from one array to another of the same shape and layout: of
-- an argument the source, of an output the result.
-- What copies make: their instruction and value.
made AS (
    SELECT
        instructions.module_id,
        instructions.instruction_id,
        instructions.instruction,
        "values".value_id,
        "values".memory_space,
        "values".size_bytes,
        "values".shape
    FROM instructions
    INNER JOIN "values"
        ON "values".module_id = instructions.module_id
            AND "values".instruction_id = instructions.instruction_id
            AND "values".shape_index
            = CASE instructions.opcode WHEN 'copy' THEN '{}' ELSE '{0}' END
    WHERE instructions.opcode IN ('copy', 'copy-start')
),

-- No row is there twice: without DISTINCT, DuckDB 2.0.0 fails on the rows of many modules.
copies AS (
    SELECT DISTINCT
        made.module_id,
        made.instruction,
        made.size_bytes,
        sides.is_argument,
        CASE WHEN sides.is_argument THEN uses.value_id ELSE made.value_id END AS copied_value_id,
        CASE WHEN sides.is_argument THEN made.value_id ELSE uses.value_id END AS beside_value_id
    FROM made
    CROSS JOIN sides
    INNER JOIN uses
        ON uses.module_id = made.module_id
            AND uses.instruction_id = made.instruction_id
    INNER JOIN operands
        ON operands.module_id = made.module_id
            AND operands.instruction_id = made.instruction_id
    INNER JOIN instructions
        ON instructions.module_id = made.module_id
            AND instructions.instruction_id = operands.operand_instruction_id
            AND instructions.shape = made.shape
    INNER JOIN "values"
        ON "values".module_id = made.module_id
            AND "values".value_id = uses.value_id
            AND "values".memory_space = made.memory_space
)

SELECT
    donated.module_id,
    donated.memory_space,
    donated.space,
    donated.parameter_number,
    donated.shape_index AS parameter_shape_index,
    donated.op_name AS argument_name,
    donated.shape,
    donated.padded_bytes AS size_bytes,
    CASE WHEN donated.output_value_id IS NULL THEN 'unused' ELSE 'copied' END AS why,
    donated.output_shape_index,
    copies.instruction AS copy_instruction,
    copies.size_bytes AS copied_bytes,
    COALESCE(
        module_memory.peak_time BETWEEN beside.start_time AND beside.end_time, FALSE
    ) AS is_live_at_peak
FROM donated
LEFT JOIN copies
    ON copies.module_id = donated.module_id
        AND copies.is_argument = donated.is_argument
        AND copies.copied_value_id = donated.copied_value_id
LEFT JOIN live_ranges AS beside
    ON beside.module_id = donated.module_id
        AND beside.value_id = copies.beside_value_id
LEFT JOIN module_memory
    ON module_memory.module_id = donated.module_id
        AND module_memory.memory_space = donated.memory_space
WHERE
    donated.output_value_id IS NULL
    OR (
        copies.instruction IS NOT NULL
        -- A copy from the argument to the output is one.
        AND (donated.is_argument OR copies.beside_value_id <> donated.value_id)
    );

CREATE OR REPLACE VIEW wasted_donations AS
SELECT
    dumped.*,
    wasted_donations.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.wasted_donations ON wasted_donations.module_id = dumped.module_id;
COMMENT ON VIEW wasted_donations IS
'Which donated arguments save nothing: XLA copies them all the same, or no output takes them.

A row per donated argument that no output takes, and per copy that XLA makes of a donated
argument, or of what becomes the output in its memory. XLA copies an argument that an instruction
still reads after the output is written, or that the output is not computed from element by
element. A copy to another memory space or layout is not counted. Needs HLO text.

Key: dump_id, parameter_number, parameter_shape_index, copy_instruction.';
COMMENT ON COLUMN wasted_donations.why IS
'copied: XLA copies it; unused: no output takes its memory';
COMMENT ON COLUMN wasted_donations.copy_instruction IS 'the copy';
COMMENT ON COLUMN wasted_donations.copied_bytes IS
'what the copy takes beside the argument''s memory';
COMMENT ON COLUMN wasted_donations.is_live_at_peak IS
'the copied bytes are there when the memory space is fullest';
