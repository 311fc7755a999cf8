-- What module $1 says of the instructions that make or read values of memory space $2, or compute
-- what these hold. A name is a stem and a number, since most names differ in their numbers alone.
WITH here AS (
    SELECT value_id, instruction_id, origin_instruction_id
    FROM "values"
    WHERE module_id = $1 AND memory_space = $2
),

named AS (
    SELECT instruction_id FROM here
    UNION
    SELECT origin_instruction_id FROM here
    UNION
    SELECT uses.instruction_id
    FROM here
    INNER JOIN uses ON uses.module_id = $1 AND uses.value_id = here.value_id
)

SELECT
    instructions.instruction_id,
    REGEXP_EXTRACT(instructions.instruction, '^(.*?)([1-9][0-9]{0,8})?$', 1) AS stem,
    TRY_CAST(
        REGEXP_EXTRACT(instructions.instruction, '^(.*?)([1-9][0-9]{0,8})?$', 2) AS INTEGER
    ) AS number,
    instructions.opcode,
    instructions.op_name,
    instructions.source_file || COALESCE(':' || instructions.source_line, '') AS source,
    instructions.stack_frame_id,
    instructions.schedule_time,
    scopes.scope
FROM instructions
INNER JOIN named ON named.instruction_id = instructions.instruction_id
LEFT JOIN scopes
    ON scopes.module_id = $1
        AND scopes.scope_id = instructions.scope_id
WHERE instructions.module_id = $1
ORDER BY instructions.instruction_id
