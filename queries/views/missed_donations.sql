-- Which arguments could have been donated: an output of the same shape takes memory of its own.
--
-- A row per argument and the output that could have reused its buffer, one output for one
-- argument. Donate them with `donate_argnums` or `donate_argnames` of `jax.jit`.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- parameter_number: which argument
-- parameter_shape_index: which part of it, `{}` for all of it
-- argument_name: its name in the program, where XLA kept it
-- shape: the shape of both
-- size_bytes: what donating it would save
-- output_instruction: the instruction that computes the output
-- output_allocation_index: the allocation that would not be needed
WITH largest AS (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        allocations.size_bytes,
        allocations.is_parameter,
        allocations.parameter_number,
        allocations.parameter_shape_index,
        "values".shape,
        "values".instruction_id,
        ROW_NUMBER() OVER (
            PARTITION BY allocations.module_id, allocations.allocation_index
            ORDER BY "values".size_bytes DESC, "values".value_id
        ) AS size_rank
    FROM allocations
    INNER JOIN modules ON modules.module_id = allocations.module_id
    INNER JOIN "values"
        ON "values".module_id = allocations.module_id
        AND "values".allocation_index = allocations.allocation_index
    INNER JOIN live_ranges
        ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
    WHERE allocations.is_parameter <> allocations.maybe_live_out
        -- An output's allocation also holds other values before it: the output lives out.
        AND (allocations.is_parameter OR live_ranges.end_time = modules.schedule_length)
        AND NOT allocations.is_thread_local
        AND "values".element_type IS NOT NULL
),

numbered AS (
    SELECT
        *,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, memory_space, shape, is_parameter
            ORDER BY parameter_number, allocation_index
        ) AS nth
    FROM largest
    WHERE size_rank = 1
)

SELECT
    arguments.module_id,
    arguments.memory_space,
    arguments.parameter_number,
    arguments.parameter_shape_index,
    parameters.op_name AS argument_name,
    arguments.shape,
    arguments.size_bytes,
    instructions.instruction AS output_instruction,
    outputs.allocation_index AS output_allocation_index
FROM numbered AS arguments
INNER JOIN numbered AS outputs
    ON outputs.module_id = arguments.module_id
    AND outputs.memory_space = arguments.memory_space
    AND outputs.shape = arguments.shape
    AND outputs.nth = arguments.nth
INNER JOIN instructions
    ON instructions.module_id = outputs.module_id
    AND instructions.instruction_id = outputs.instruction_id
INNER JOIN instructions AS parameters
    ON parameters.module_id = arguments.module_id
    AND parameters.instruction_id = arguments.instruction_id
WHERE arguments.is_parameter AND NOT outputs.is_parameter
