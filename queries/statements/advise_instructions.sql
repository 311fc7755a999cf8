-- The instructions of module $1, by their numbers, which count from 0.
SELECT
    instruction_id,
    instruction,
    computation,
    opcode,
    shape,
    schedule_time,
    custom_call_target,
    source_file,
    source_line
FROM instructions
WHERE module_id = $1
ORDER BY instruction_id
