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
    -- Some uses are in a loop's body, before the value's life begins.
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
        _values.*,
        _values.end_time - _values.start_time + 1 AS life,
        GREATEST(
            COALESCE(idle.until_a_use, 0),
            _values.end_time - COALESCE(idle.last_time, _values.start_time)
        ) AS idle_time
    FROM _values
    INNER JOIN allocations
        ON allocations.module_id = _values.module_id
            AND allocations.allocation_index = _values.allocation_index
    LEFT JOIN idle
        ON idle.module_id = _values.module_id
            AND idle.value_id = _values.value_id
    WHERE allocations.is_temp AND _values.start_time IS NOT NULL
)

SELECT
    lives.module_id,
    lives.memory_space,
    lives.value_id,
    lives.instruction,
    lives.shape_index,
    lives.opcode,
    lives.shape,
    lives.size_bytes,
    lives.start_time,
    lives.end_time,
    lives.life,
    lives.size_bytes * lives.life AS byte_steps,
    lives.idle_time,
    lives.size_bytes * lives.idle_time AS idle_byte_steps,
    COALESCE(module_memory.peak_time BETWEEN lives.start_time AND lives.end_time, FALSE)
        AS is_live_at_peak,
    lives.op_name,
    lives.source_file,
    lives.source_line
FROM lives
LEFT JOIN module_memory
    ON module_memory.module_id = lives.module_id
        AND module_memory.memory_space = lives.memory_space
