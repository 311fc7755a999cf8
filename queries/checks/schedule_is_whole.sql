-- The schedule has one instruction at each time from 0 to schedule_length - 1.
SELECT
    modules.module_id,
    'the schedule has ' || COUNT(DISTINCT instructions.schedule_time) || ' times up to '
    || COALESCE(MAX(instructions.schedule_time), -1) || ', XLA reports '
    || modules.schedule_length AS breach
FROM modules
LEFT JOIN instructions ON instructions.module_id = modules.module_id
WHERE modules.schedule_length IS NOT NULL
GROUP BY modules.module_id, modules.schedule_length
HAVING COUNT(DISTINCT instructions.schedule_time) <> modules.schedule_length
    OR COUNT(instructions.schedule_time) <> modules.schedule_length
    OR COALESCE(MAX(instructions.schedule_time), -1) <> modules.schedule_length - 1
