-- How full a memory space is over a module's schedule.
--
-- A row per memory space and stretch of the schedule in which the space's bytes do not change.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- start_time: first time of the stretch
-- end_time: last time of the stretch
-- occupied_bytes: union of the addresses of what is live
-- live_bytes: sum of the sizes of what is live; aliased values count twice
-- instruction: the instruction at start_time
-- opcode: its opcode
-- op_name: the framework's name of its operation
SELECT
    steps.module_id,
    steps.memory_space,
    steps.start_time,
    COALESCE(steps.next_time, modules.schedule_length) - 1 AS end_time,
    steps.occupied_bytes,
    steps.live_bytes,
    instructions.instruction,
    instructions.opcode,
    instructions.op_name
FROM (
    SELECT
        *,
        LEAD(start_time) OVER (PARTITION BY module_id, memory_space ORDER BY start_time)
            AS next_time
    FROM occupancy
) AS steps
INNER JOIN modules ON modules.module_id = steps.module_id
LEFT JOIN instructions
    ON instructions.module_id = steps.module_id
        AND instructions.schedule_time = steps.start_time
