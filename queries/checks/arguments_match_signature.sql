-- Each array of the program's arguments has one allocation, of its shape and size.
-- An estimate rounds sizes up.
SELECT
    entry_shapes.module_id,
    'argument ' || entry_shapes.parameter_number || entry_shapes.shape_index || ' is '
    || entry_shapes.shape || ' of ' || entry_shapes.padded_bytes || ' bytes, its allocation '
    || COALESCE(allocations.shape || ' of ' || allocations.size_bytes, 'is not there') AS breach
FROM entry_shapes
INNER JOIN modules ON modules.module_id = entry_shapes.module_id
LEFT JOIN allocations
    ON allocations.module_id = entry_shapes.module_id
        AND allocations.parameter_number = entry_shapes.parameter_number
        AND allocations.parameter_shape_index = entry_shapes.shape_index
WHERE NOT entry_shapes.is_output
    AND entry_shapes.module_id IN (SELECT module_id FROM allocations)
    AND (
        allocations.shape IS NULL
        OR SPLIT_PART(allocations.shape, '{', 1) <> SPLIT_PART(entry_shapes.shape, '{', 1)
        OR (
            modules.origin <> 'estimated' AND allocations.size_bytes <> entry_shapes.padded_bytes
        )
    )
UNION ALL
SELECT
    allocations.module_id,
    'argument ' || allocations.parameter_number || allocations.parameter_shape_index
    || ' of allocation ' || allocations.allocation_index || ' is not in the signature'
FROM allocations
LEFT JOIN entry_shapes
    ON entry_shapes.module_id = allocations.module_id
        AND NOT entry_shapes.is_output
        AND entry_shapes.parameter_number = allocations.parameter_number
        AND entry_shapes.shape_index = allocations.parameter_shape_index
WHERE allocations.is_parameter
    AND allocations.module_id IN (SELECT module_id FROM entry_shapes)
    AND entry_shapes.shape IS NULL
    AND allocations.parameter_shape_index <> '{}'
UNION ALL
SELECT
    module_id,
    'argument ' || parameter_number || parameter_shape_index || ' has two allocations'
FROM allocations
WHERE is_parameter
GROUP BY module_id, parameter_number, parameter_shape_index
HAVING COUNT(*) > 1
