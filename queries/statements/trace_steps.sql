-- The scheduled instructions of module $1, in order: what runs at each time of a trace.
SELECT
    schedule_time AS start_time,
    instruction,
    opcode,
    op_name,
    pass,
    source_file || ':' || source_line AS source
FROM instructions
WHERE module_id = $1 AND schedule_time IS NOT NULL
ORDER BY schedule_time
