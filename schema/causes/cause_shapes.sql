-- The arguments and results of the modules $1, and the donated bytes of each argument.
SELECT
    entry_shapes.module_id,
    entry_shapes.is_output,
    entry_shapes.parameter_number,
    entry_shapes.shape_index,
    entry_shapes.argument_name,
    entry_shapes.sharding,
    entry_shapes.shape,
    entry_shapes.padded_bytes,
    donated.size_bytes AS donated_bytes
FROM entry_shapes
LEFT JOIN allocations AS donated
    ON donated.module_id = entry_shapes.module_id
        AND donated.parameter_number = entry_shapes.parameter_number
        AND donated.parameter_shape_index = entry_shapes.shape_index
        AND donated.is_parameter
        AND donated.maybe_live_out
        AND donated.module_id IN (SELECT UNNEST($1))
WHERE entry_shapes.module_id IN (SELECT UNNEST($1))
ORDER BY entry_shapes.module_id, entry_shapes.parameter_number, entry_shapes.shape_index
