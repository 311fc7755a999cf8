-- The arrays that the loops of module $1 carry, a row per loop and place in its tuple.
-- A value that no turn changes is no phi.
WITH bodies AS (
    SELECT
        calls.instruction_id,
        calls.computation,
        MIN(inner_instructions.schedule_time) AS body_start_time
    FROM calls
    INNER JOIN instructions AS inner_instructions
        ON inner_instructions.module_id = calls.module_id
            AND inner_instructions.computation = calls.computation
    WHERE calls.module_id = $1 AND calls.attribute = 'body'
    GROUP BY calls.instruction_id, calls.computation
)

SELECT
    loops.instruction_id,
    loops.computation,
    loops.schedule_time AS end_time,
    loops."pass" AS loop_pass,
    loops.source_file || ':' || loops.source_line AS source,
    bodies.computation AS body,
    bodies.body_start_time,
    positions.shape_index,
    positions.value_id,
    "values".is_phi,
    "values".size_bytes,
    "values".element_type,
    "values".shape,
    "values"."pass"
FROM instructions AS loops
INNER JOIN bodies ON bodies.instruction_id = loops.instruction_id
INNER JOIN positions
    ON positions.module_id = loops.module_id
        AND positions.instruction_id = loops.instruction_id
INNER JOIN "values"
    ON "values".module_id = positions.module_id
        AND "values".value_id = positions.value_id
WHERE
    loops.module_id = $1
    AND loops.opcode = 'while'
    AND "values".element_type IS NOT NULL
ORDER BY loops.schedule_time, LENGTH(positions.shape_index), positions.shape_index
