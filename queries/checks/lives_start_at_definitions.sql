-- A value's life starts at the instruction that defines the value.
--
-- An argument of the program lives from 0, and an argument of a loop's body from before the body.
SELECT
    live_ranges.module_id,
    'value ' || live_ranges.value_id || ' lives from ' || live_ranges.start_time || ', '
    || instructions.instruction || ' is at ' || instructions.schedule_time AS breach
FROM live_ranges
INNER JOIN "values"
    ON "values".module_id = live_ranges.module_id AND "values".value_id = live_ranges.value_id
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
        AND instructions.instruction_id = "values".instruction_id
LEFT JOIN computations
    ON computations.module_id = instructions.module_id
        AND computations.computation = instructions.computation
WHERE (
    instructions.opcode <> 'parameter'
    AND live_ranges.start_time <> instructions.schedule_time
    -- In an async computation the newest libtpu counts from the async-start.
    AND NOT EXISTS (
        SELECT 1
        FROM calls
        INNER JOIN instructions AS callers
            ON callers.module_id = calls.module_id
                AND callers.instruction_id = calls.instruction_id
        WHERE calls.module_id = instructions.module_id
            AND calls.computation = instructions.computation
            AND callers.opcode = 'async-start'
    )
)
OR (instructions.opcode = 'parameter' AND live_ranges.start_time > instructions.schedule_time)
OR (instructions.opcode = 'parameter' AND computations.is_entry AND live_ranges.start_time > 0)
