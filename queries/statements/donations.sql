-- The rows of `memhouse donations MODULE`: module $1, memory space $2, the $3 largest.
WITH findings AS (
    SELECT
        saving_bound_bytes,
        CASE WHEN read_later_by IS NULL THEN 'not donated' ELSE 'read later' END AS finding,
        parameter_number,
        parameter_shape_index,
        argument_name,
        shape,
        output_shape_index,
        COALESCE(read_later_by, output_instruction) AS instruction,
        paired_by
    FROM internal.missed_donations
    WHERE module_id = $1 AND memory_space = $2
    UNION ALL
    SELECT
        COALESCE(copied_bytes, 0),
        why,
        parameter_number,
        parameter_shape_index,
        argument_name,
        shape,
        output_shape_index,
        copy_instruction,
        NULL
    FROM internal.wasted_donations
    WHERE module_id = $1 AND memory_space = $2
)

SELECT
    saving_bound_bytes,
    finding,
    COALESCE(
        argument_name,
        'argument ' || parameter_number
        || CASE WHEN parameter_shape_index = '{}' THEN '' ELSE parameter_shape_index END
    ) AS argument,
    shape,
    instruction,
    output_shape_index AS output,
    paired_by,
    parameter_number,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM findings
ORDER BY
    saving_bound_bytes DESC, finding, parameter_number,
    LENGTH(parameter_shape_index), parameter_shape_index, instruction
LIMIT $3;

-- name: has_signature
-- Whether the shapes of the arguments and results of module $1 are known.
SELECT entry_signature IS NOT NULL AS is_known
FROM modules
WHERE module_id = $1;
