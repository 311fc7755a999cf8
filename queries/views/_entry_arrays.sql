-- The arrays of the entry computation's arguments and result, with the values that they are.
--
-- A row per array of an argument or of the result. An output's value is the one that stands at
-- the root of the entry computation, so that a bitcast in between makes no difference. The view
-- needs HLO text.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space of the value
-- is_output: it is a part of the result, not of an argument
-- parameter_number: which argument; null for the result
-- shape_index: which part of the argument or the result, `{}` for all of it
-- place: 1 for the first argument or result, in their order
-- element_type: for example bf16
-- dimensions: the dimensions, for example 8,128
-- element_bits: the bits of an element; 0 if its type does not say
-- shape: the shape with layout
-- logical_bytes: elements x element size
-- padded_bytes: with what tiling adds
-- is_shared: an argument whose memory a result takes, or a result in an argument's memory
-- argument: the argument, such as `3{1}`; of an output, the one whose memory it takes by XLA's
--     header
-- is_donor: an argument that is donated, although XLA's header has no result for it
-- partitions: SPMD partitions the module was compiled for
-- value_id: the value, see `values`
-- allocation_index: the value's allocation, see `allocations`
-- instruction_id: the instruction that defines the value
-- instruction: its name
-- opcode: its opcode
-- op_name: the framework's name of it: of an argument its name
-- start_time: the first time at which the value is live; of a loop's result, its initial value
-- end_time: the last time at which the value is live
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
WHERE arrays.element_type NOT IN ('token', 'opaque')
