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
WITH numbered AS (
    SELECT
        allocations.module_id,
        allocations.memory_space,
        allocations.allocation_index,
        allocations.size_bytes,
        allocations.is_parameter,
        allocations.parameter_number,
        allocations.parameter_shape_index,
        stands.shape,
        stands.instruction,
        stands.op_name,
        ROW_NUMBER() OVER (
            PARTITION BY
                allocations.module_id, allocations.memory_space, stands.shape,
                allocations.is_parameter
            ORDER BY allocations.parameter_number, allocations.allocation_index
        ) AS nth
    FROM allocations
    INNER JOIN _standing
        ON _standing.module_id = allocations.module_id
        AND _standing.allocation_index = allocations.allocation_index
    INNER JOIN _values AS stands
        ON stands.module_id = _standing.module_id
        AND stands.value_id = _standing.array_value_id
    WHERE allocations.is_parameter <> allocations.maybe_live_out
)

SELECT
    arguments.module_id,
    arguments.memory_space,
    arguments.parameter_number,
    arguments.parameter_shape_index,
    arguments.op_name AS argument_name,
    arguments.shape,
    arguments.size_bytes,
    outputs.instruction AS output_instruction,
    outputs.allocation_index AS output_allocation_index
FROM numbered AS arguments
INNER JOIN numbered AS outputs
    ON outputs.module_id = arguments.module_id
    AND outputs.memory_space = arguments.memory_space
    AND outputs.shape = arguments.shape
    AND outputs.nth = arguments.nth
WHERE arguments.is_parameter AND NOT outputs.is_parameter
