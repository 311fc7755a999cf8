-- If the HLO text is in XLA's schedule, the stored schedule has the same order.
SELECT
    module_id,
    instruction || ' is scheduled before the instruction that precedes it in the HLO text' AS breach
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
