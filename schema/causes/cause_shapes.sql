-- The arguments and results of the modules $1, and the donated bytes of each argument.
WITH donated AS (
    SELECT
        module_id,
        parameter_number,
        parameter_shape_index,
        size_bytes
    FROM allocations
    WHERE module_id IN (SELECT UNNEST($1)) AND is_parameter AND maybe_live_out
),

-- Filtered before the join: else the join reads all modules.
shapes AS (
    SELECT *
    FROM entry_shapes
    WHERE module_id IN (SELECT UNNEST($1))
)

SELECT
    shapes.module_id,
    shapes.is_output,
    shapes.parameter_number,
    shapes.shape_index,
    shapes.argument_name,
    shapes.sharding,
    shapes.shape,
    shapes.padded_bytes,
    donated.size_bytes AS donated_bytes
FROM shapes
LEFT JOIN donated
    ON donated.module_id = shapes.module_id
        AND donated.parameter_number = shapes.parameter_number
        AND donated.parameter_shape_index = shapes.shape_index
ORDER BY shapes.module_id, shapes.parameter_number, shapes.shape_index
