-- name: spaces
-- The memory spaces of module $1, with the memory of the device that dump $2 is for.
SELECT
    module_memory.memory_space,
    module_memory.space_name,
    module_memory.peak_bytes,
    module_memory.peak_time,
    module_memory.reserved_bytes,
    CASE WHEN module_memory.memory_space = 0 THEN dumps.device_memory_bytes END
        AS device_memory_bytes,
    modules.schedule_length,
    modules.origin,
    dumps.platform
FROM module_memory
INNER JOIN modules ON modules.module_id = module_memory.module_id
INNER JOIN dumps ON dumps.dump_id = $2
WHERE module_memory.module_id = $1
ORDER BY module_memory.memory_space;

-- name: buffers
-- The buffers of module $1 in memory space $2, each with the place where a report draws it.
--
-- Allocations are put on top of one another: those that are there throughout first, the largest
-- of a category first, and the temps above them.
WITH placed AS (
    SELECT
        allocation_index,
        size_bytes AS allocation_bytes,
        CAST(COALESCE(SUM(size_bytes) OVER (
            ORDER BY
                is_temp,
                NOT is_parameter,
                NOT maybe_live_out,
                NOT is_constant,
                size_bytes DESC,
                allocation_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS BIGINT) AS base
    FROM allocations
    WHERE module_id = $1 AND memory_space = $2 AND NOT is_thread_local
)

SELECT
    buffers.value_id,
    buffers.allocation_index,
    buffers.category,
    buffers.size_bytes,
    buffers.padding_bytes,
    COALESCE(buffers.counted_at_peak_bytes, 0) AS peak_counted_bytes,
    placed.base + buffers.offset_bytes AS address,
    buffers.offset_bytes,
    placed.allocation_bytes,
    buffers.occupied_from AS start_time,
    buffers.occupied_to AS end_time,
    buffers.last_use_time,
    buffers.instruction
    || CASE WHEN buffers.shape_index = '{}' THEN '' ELSE buffers.shape_index END AS value,
    CASE
        WHEN buffers.shape LIKE '(%' THEN REGEXP_REPLACE(buffers.shape, '\{[^{}]*\}', '', 'g')
        ELSE REGEXP_REPLACE(buffers.shape, '\{.*', '')
    END AS shape,
    buffers.element_type,
    buffers.op_name,
    REGEXP_EXTRACT(buffers.source_file, '[^/]*$') || ':' || buffers.source_line AS source,
    buffers.stack_frame_id,
    buffers.scope,
    buffers.operation,
    buffers.pass,
    buffers.role,
    buffers.origin_rule,
    COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM internal.buffers AS buffers
INNER JOIN placed ON placed.allocation_index = buffers.allocation_index
WHERE buffers.module_id = $1 AND buffers.memory_space = $2
ORDER BY address, buffers.size_bytes DESC, buffers.value_id;

-- name: sides
-- The peaks of the dumps $1 in main memory, for the report of a diff: a row per dump with figures.
SELECT
    dumps.dump_id,
    dumps.platform,
    modules.origin,
    module_memory.peak_bytes
FROM dumps
INNER JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
WHERE dumps.dump_id IN (SELECT UNNEST($1))
ORDER BY dumps.dump_id;

-- name: occupancy
-- How full memory space $2 of module $1 is, from one change to the next.
SELECT start_time, occupied_bytes
FROM occupancy
WHERE module_id = $1 AND memory_space = $2
ORDER BY start_time;

-- name: values
-- The values of module $1 in memory space $2: what the report tells of the one that is pinned.
SELECT
    "values".value_id,
    "values".instruction_id,
    "values".shape_index,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".logical_bytes,
    "values".shape,
    "values".origin_instruction_id,
    "values".origin_rule,
    "values".pass,
    "values".role,
    COALESCE("values".alias_set, "values".value_id) AS alias_set,
    "values".residual_id IS NOT NULL AS is_saved_for_backward,
    "values".last_use_time,
    live_ranges.start_time,
    live_ranges.end_time,
    alias_sets.peak_idle_time
FROM "values"
LEFT JOIN live_ranges
    ON live_ranges.module_id = $1
        AND live_ranges.value_id = "values".value_id
LEFT JOIN alias_sets
    ON alias_sets.module_id = $1
        AND alias_sets.alias_set = COALESCE("values".alias_set, "values".value_id)
WHERE "values".module_id = $1 AND "values".memory_space = $2
ORDER BY "values".value_id;

-- name: instructions
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
ORDER BY instructions.instruction_id;

-- name: frames
-- The Python frames of module $1: where each is, and who calls it.
SELECT
    stack_frame_id,
    parent_frame_id,
    "function",
    file || COALESCE(':' || line, '') AS place
FROM stack_frames
WHERE module_id = $1
ORDER BY stack_frame_id;

-- name: allocations
-- The allocations of module $1 in memory space $2, and what each is for.
SELECT
    allocation_index,
    size_bytes,
    parameter_number,
    CASE
        WHEN is_parameter AND maybe_live_out THEN 'argument and output'
        WHEN is_parameter THEN 'argument'
        WHEN maybe_live_out THEN 'output'
        WHEN is_constant THEN 'constant'
        WHEN is_thread_local THEN 'within one instruction'
        WHEN is_temp THEN 'temp'
        ELSE 'other'
    END AS holds
FROM allocations
WHERE module_id = $1 AND memory_space = $2
ORDER BY allocation_index;

-- name: readers
-- The instructions that read the values of module $1 in memory space $2: up to $3 a value, in
-- the order of their times, and how many there are.
WITH reading AS (
    SELECT
        uses.value_id,
        uses.instruction_id,
        ANY_VALUE(instructions.schedule_time) AS schedule_time
    FROM "values"
    INNER JOIN uses ON uses.module_id = $1 AND uses.value_id = "values".value_id
    INNER JOIN instructions
        ON instructions.module_id = $1
            AND instructions.instruction_id = uses.instruction_id
    WHERE "values".module_id = $1 AND "values".memory_space = $2
    -- An instruction that reads a value as several of its operands is one reader.
    GROUP BY uses.value_id, uses.instruction_id
)

SELECT
    value_id,
    instruction_id,
    COUNT(*) OVER (PARTITION BY value_id) AS readers,
    ROW_NUMBER() OVER (
        PARTITION BY value_id ORDER BY schedule_time NULLS LAST, instruction_id
    ) AS place
FROM reading
QUALIFY place <= $3
ORDER BY value_id, place;

-- name: accepted
-- The changes that were accepted of dump $1 in memory space $2.
SELECT metric, accepted_bytes, reason, accepted_at
FROM accepted_changes
WHERE dump_id = $1 AND memory_space = $2
ORDER BY metric;

-- name: headline
-- What the top of a report says of dump $1 in memory space $2: its figures, device and compiler.
SELECT
    dumps.run_id,
    runs.run_at,
    dumps.platform,
    dumps.compiler,
    dumps.device_kind,
    dumps.device_memory_bytes,
    dumps.topology,
    dumps.oom,
    modules.origin,
    peaks.peak_bytes,
    peaks.peak_time,
    peaks.schedule_length,
    instructions.instruction AS peak_instruction,
    peaks.headroom_bytes,
    peaks.argument_bytes,
    peaks.output_bytes,
    peaks.alias_bytes,
    peaks.constant_bytes,
    peaks.temp_bytes,
    peaks.fragmentation_bytes,
    peaks.padding_bytes
FROM dumps
INNER JOIN runs ON runs.run_id = dumps.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN internal.peaks ON peaks.dump_id = dumps.dump_id AND peaks.memory_space = $2
LEFT JOIN instructions
    ON instructions.module_id = peaks.module_id
        AND instructions.instruction_id = peaks.peak_instruction_id
WHERE dumps.dump_id = $1;

-- name: padded
-- What tiling pads in module $1 and memory space $2: equal values of a line are one row. What is
-- live at the peak comes first.
SELECT
    padding_bytes,
    COUNT(*) AS "values",
    is_live_at_peak AS live_at_peak,
    times_logical,
    size_bytes,
    shape,
    REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source,
    MIN(op_name) AS op_name,
    MIN(instruction) AS first_instruction,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM internal.padding
WHERE module_id = $1 AND memory_space = $2
GROUP BY
    padding_bytes, is_live_at_peak, times_logical, size_bytes, shape, source_file, source_line
ORDER BY
    is_live_at_peak DESC, padding_bytes * COUNT(*) DESC, padding_bytes DESC, shape,
    source_file, source_line;
