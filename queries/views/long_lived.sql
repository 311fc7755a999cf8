-- Which temp values hold much memory for long: candidates for rematerialisation.
--
-- A row per value in a temp allocation. The best candidates are large, live at the peak, and
-- unused for most of their life: large idle_byte_steps.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- value_id: the value, see `values`
-- instruction: the instruction that defines it
-- shape_index: which part of its shape, `{}` for all of it
-- opcode: its opcode
-- shape: its shape with layout
-- size_bytes: what it takes
-- start_time: first time it is live
-- end_time: last time it is live
-- life: end_time - start_time + 1
-- byte_steps: size_bytes x life
-- idle_time: the longest stretch of its life between two times at which it is touched
-- idle_byte_steps: size_bytes x idle_time
-- is_live_at_peak: it is live when its memory space is fullest
-- op_name: the framework's name of the operation
-- source_file: the Python file of the line that made it
-- source_line: that line
WITH used AS (
    -- Some uses stand in a loop's body before the value's life begins.
    SELECT
        uses.module_id,
        uses.value_id,
        live_ranges.start_time,
        instructions.schedule_time,
        LAG(instructions.schedule_time) OVER (
            PARTITION BY uses.module_id, uses.value_id ORDER BY instructions.schedule_time
        ) AS previous_time
    FROM uses
    INNER JOIN instructions
        ON instructions.module_id = uses.module_id
        AND instructions.instruction_id = uses.instruction_id
    INNER JOIN live_ranges
        ON live_ranges.module_id = uses.module_id
        AND live_ranges.value_id = uses.value_id
        AND live_ranges.start_time <= instructions.schedule_time
        AND live_ranges.end_time >= instructions.schedule_time
),

idle AS (
    SELECT
        module_id,
        value_id,
        MAX(schedule_time - COALESCE(previous_time, start_time)) AS until_a_use,
        MAX(schedule_time) AS last_time
    FROM used
    GROUP BY module_id, value_id
),

lives AS (
    SELECT
        live_ranges.module_id,
        live_ranges.value_id,
        live_ranges.start_time,
        live_ranges.end_time,
        GREATEST(
            COALESCE(idle.until_a_use, 0),
            live_ranges.end_time - COALESCE(idle.last_time, live_ranges.start_time)
        ) AS idle_time
    FROM live_ranges
    LEFT JOIN idle
        ON idle.module_id = live_ranges.module_id AND idle.value_id = live_ranges.value_id
)

SELECT
    "values".module_id,
    "values".memory_space,
    "values".value_id,
    instructions.instruction,
    "values".shape_index,
    instructions.opcode,
    "values".shape,
    "values".size_bytes,
    lives.start_time,
    lives.end_time,
    lives.end_time - lives.start_time + 1 AS life,
    "values".size_bytes * (lives.end_time - lives.start_time + 1) AS byte_steps,
    lives.idle_time,
    "values".size_bytes * lives.idle_time AS idle_byte_steps,
    COALESCE(
        module_memory.peak_time BETWEEN lives.start_time AND lives.end_time, FALSE
    ) AS is_live_at_peak,
    instructions.op_name,
    instructions.source_file,
    instructions.source_line
FROM "values"
INNER JOIN allocations
    ON allocations.module_id = "values".module_id
    AND allocations.allocation_index = "values".allocation_index
INNER JOIN lives
    ON lives.module_id = "values".module_id
    AND lives.value_id = "values".value_id
INNER JOIN instructions
    ON instructions.module_id = "values".module_id
    AND instructions.instruction_id = "values".instruction_id
LEFT JOIN module_memory
    ON module_memory.module_id = "values".module_id
    AND module_memory.memory_space = "values".memory_space
WHERE allocations.is_temp
