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
        module_id,
        memory_space,
        allocation_index,
        size_bytes,
        is_parameter,
        parameter_number,
        parameter_shape_index,
        shape,
        instruction_id,
        ROW_NUMBER() OVER (
            PARTITION BY module_id, memory_space, shape, is_parameter
            ORDER BY parameter_number, allocation_index
        ) AS nth
    FROM _standing
    WHERE choice = 'array' AND is_parameter <> maybe_live_out
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
