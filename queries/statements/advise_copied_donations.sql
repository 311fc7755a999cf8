-- Copies of donated arguments in memory space $2 of module $1, the largest first. What stands
-- beside the argument's memory is the copy, or, of an output that is copied into that memory, its
-- source. `reader` is the last that reads the argument or its copy; of a loop's output the source
-- line is the loop's.
WITH copies AS (
    SELECT
        wasted.parameter_number,
        wasted.parameter_shape_index,
        wasted.argument_name,
        wasted.copied_bytes,
        wasted.copy_instruction,
        donated.value_id AS argument_value_id,
        CASE
            WHEN uses.value_id = donated.value_id THEN made.value_id
            ELSE uses.value_id
        END AS beside_value_id,
        CASE
            WHEN uses.value_id = donated.value_id THEN made.value_id
            ELSE donated.value_id
        END AS read_value_id
    FROM wasted_donations AS wasted
    INNER JOIN allocations AS donated
        ON donated.module_id = wasted.module_id
            AND donated.parameter_number = wasted.parameter_number
            AND donated.parameter_shape_index = wasted.parameter_shape_index
    INNER JOIN instructions
        ON instructions.module_id = wasted.module_id
            AND instructions.instruction = wasted.copy_instruction
    INNER JOIN "values" AS made
        ON made.module_id = instructions.module_id
            AND made.instruction_id = instructions.instruction_id
            AND made.shape_index = CASE instructions.opcode WHEN 'copy' THEN '{}' ELSE '{0}' END
    INNER JOIN uses
        ON uses.module_id = instructions.module_id
            AND uses.instruction_id = instructions.instruction_id
    WHERE
        wasted.module_id = $1
        AND wasted.memory_space = $2
        AND wasted.why = 'copied'
),

-- What only hands an array on, or copies it, does not compute from it.
readers AS (
    SELECT
        copies.read_value_id,
        MAX_BY(uses.instruction_id, instructions.schedule_time) AS instruction_id
    FROM copies
    INNER JOIN uses
        ON uses.module_id = $1 AND uses.value_id = copies.read_value_id
    INNER JOIN instructions
        ON instructions.module_id = $1 AND instructions.instruction_id = uses.instruction_id
    WHERE
        instructions.opcode
        NOT IN ('bitcast', 'tuple', 'get-tuple-element', 'opt-barrier', 'copy', 'copy-start')
    GROUP BY copies.read_value_id
)

SELECT DISTINCT
    copies.parameter_number,
    copies.parameter_shape_index,
    copies.argument_name,
    copies.copied_bytes,
    copies.copy_instruction,
    copies.argument_value_id,
    copies.beside_value_id,
    made.opcode = 'while' AS is_of_loop,
    reader.instruction AS reader,
    CASE
        WHEN made.opcode = 'while' THEN made.source_file || ':' || made.source_line
        ELSE reader.source_file || ':' || reader.source_line
    END AS source
FROM copies
INNER JOIN "values" AS beside
    ON beside.module_id = $1 AND beside.value_id = copies.beside_value_id
INNER JOIN instructions AS made
    ON made.module_id = $1 AND made.instruction_id = beside.instruction_id
LEFT JOIN readers ON readers.read_value_id = copies.read_value_id
LEFT JOIN instructions AS reader
    ON reader.module_id = $1 AND reader.instruction_id = readers.instruction_id
ORDER BY copies.copied_bytes DESC, copies.parameter_number, copies.parameter_shape_index
