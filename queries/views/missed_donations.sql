-- Which arguments could have been donated: an output takes memory of its own that fits them.
--
-- A row per argument and the output that could take its place, one output for one argument.
-- Donate them with `donate_argnums` or `donate_argnames` of `jax.jit`. JAX pairs donated
-- arguments with results of equal element type and dimensions, in their order. What is left over
-- XLA pairs by equal bytes; JAX lets it do so only for an equal number of elements, unless the
-- program is partitioned. Needs HLO text.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- parameter_number: which argument
-- parameter_shape_index: which part of it, `{}` for all of it
-- argument_name: its name in the program, where XLA kept it
-- shape: its shape
-- size_bytes: what it takes
-- saving_bound_bytes: what donating it saves at most: an output's memory also holds other
--     values before the output, and XLA may have to copy the argument
-- paired_by: shape: JAX pairs the two; bytes: XLA does
-- read_later_by: the last instruction that reads the argument after the output's memory is first
--     written, in this schedule; null if none. XLA then copies the argument, which saves nothing,
--     unless it can run the instruction earlier
-- output_shape_index: which part of the result the output is, `{}` for all of it
-- output_shape: the shape of the output
-- output_instruction: the instruction that computes the output
-- output_allocation_index: the allocation that would not be needed
WITH free AS (
    SELECT
        *,
        CASE WHEN partitions > 1 THEN '' ELSE logical_bytes || '/' || element_bits END AS elements,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, memory_space, element_type, dimensions, is_output
            ORDER BY place
        ) AS nth
    FROM _entry_arrays
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
    AND paired.padded_bytes IS NOT NULL
