-- Which donated arguments save nothing: XLA copies them all the same, or no output takes them.
--
-- A row per donated argument that no output takes, and per copy that XLA makes of a donated
-- argument, or of what becomes the output in its memory. XLA copies an argument that an
-- instruction still reads after the output is written, or that the output is not computed from
-- element by element. A copy to another memory space or layout is not counted. Needs HLO text.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- parameter_number: which argument
-- parameter_shape_index: which part of it, `{}` for all of it
-- argument_name: its name in the program, where XLA kept it
-- shape: its shape
-- size_bytes: what it takes
-- why: copied: XLA copies it; unused: no output takes its memory
-- output_shape_index: which part of the result takes its memory
-- copy_instruction: the copy
-- copied_bytes: what the copy takes beside the argument's memory
-- is_live_at_peak: the copied bytes are there when the memory space is fullest
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
    FROM _entry_arrays
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
LEFT JOIN _lives AS beside
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
    )
