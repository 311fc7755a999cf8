-- Within a computation the schedule has the HLO text's order, where the text says it is XLA's.
SELECT module_id, instruction || ' is scheduled before what stands before it' AS breach
FROM (
    SELECT
        instructions.module_id,
        instructions.instruction,
        instructions.schedule_time,
        LAG(instructions.schedule_time) OVER (
            PARTITION BY instructions.module_id, instructions.computation
            ORDER BY instructions.instruction_id
        ) AS previous_time
    FROM instructions
    INNER JOIN modules ON modules.module_id = instructions.module_id
    WHERE modules.is_scheduled AND instructions.schedule_time IS NOT NULL
) AS scheduled
WHERE schedule_time < previous_time
