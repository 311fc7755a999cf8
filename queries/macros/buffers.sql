-- Whether a user means this memory space: by its name or number, or all of them by null.
CREATE OR REPLACE MACRO internal.is_in_space(in_space, space_name, space_number) AS
CASE
    WHEN in_space IS NULL THEN TRUE
    WHEN TRY_CAST(in_space AS INTEGER) IS NOT NULL THEN CAST(in_space AS INTEGER) = space_number
    WHEN in_space IN ('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
        THEN CAST(in_space AS VARCHAR) = CAST(space_name AS VARCHAR)
    ELSE ERROR('there is no memory space ' || in_space)
END;

CREATE OR REPLACE MACRO buffers_at(module, in_space, schedule_time) AS TABLE
SELECT
    live.* EXCLUDE (counted_at_peak_bytes, is_live_at_peak, peak_bytes),
    GREATEST(
        live.offset_bytes + live.size_bytes - GREATEST(
            live.offset_bytes,
            COALESCE(
                MAX(live.offset_bytes + live.size_bytes) OVER (
                    PARTITION BY live.module_id, live.allocation_index
                    ORDER BY live.offset_bytes, live.size_bytes DESC, live.value_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                0
            )
        ),
        0
    ) AS counted_bytes
FROM internal.buffers AS live
WHERE live.module_id = module
    AND internal.is_in_space(in_space, live.space, live.memory_space)
    AND CASE
        WHEN schedule_time IS NULL THEN live.is_live_at_peak
        ELSE schedule_time BETWEEN live.occupied_from AND live.occupied_to
    END;
COMMENT ON MACRO TABLE buffers_at IS
'What takes a module''s memory at a time, buffer by buffer: `memhouse buffers --schedule-time`.

A row per row of `buffers` that takes memory then, with the same columns but for those of the dump
and the peak. counted_bytes, the last column, add up to what is occupied at the time.

module: a module_id, such as module(''llama-v5e'') finds
in_space: a memory space by name or number, ''hbm'' or 0; null for all
schedule_time: a position in the schedule; null for the peak of each space
padding_bytes: size_bytes - the logical size
kind: arguments, copies of arguments, outputs, constants, temps or other
counted_bytes: the part of the buffer''s extent that no row before it in address order covers';

CREATE OR REPLACE MACRO live_at(module, schedule_time) AS TABLE
SELECT
    memory_space,
    taken.space,
    counted_bytes,
    category,
    size_bytes,
    instruction,
    op_name,
    "role",
    occupied_from,
    occupied_to,
    start_time,
    end_time,
    value_id
FROM buffers_at(module, NULL, schedule_time) AS taken
ORDER BY memory_space, counted_bytes DESC, allocation_index, value_id;
COMMENT ON MACRO TABLE live_at IS
'What takes a module''s memory at a time, in all memory spaces.

A row per buffer that takes memory then: arguments, outputs and constants for the whole program,
also before and after the life of a value in them. `live_ranges` knows these lives alone, so its
sums are less than what is occupied. counted_bytes of a space add up to it.

module: a module_id, such as module(''llama-v5e'') finds
schedule_time: a position in the schedule; null for the peak of each space
counted_bytes: what the buffer adds to what is occupied then, see `buffers_at`';

CREATE OR REPLACE MACRO timeline_of(module) AS TABLE
SELECT *
FROM internal.timeline AS stretches
WHERE stretches.module_id = module
ORDER BY stretches.memory_space, stretches.start_time;
COMMENT ON MACRO TABLE timeline_of IS
'How full a module''s memory is over its schedule: `memhouse timeline`.

The rows of `timeline` of one module, of all its memory spaces.

module: a module_id, such as module(''llama-v5e'') finds
start_time: first time of the stretch
end_time: last time of the stretch
instruction: the instruction at start_time
op_name: the framework''s name of its operation';

CREATE OR REPLACE MACRO holes_at(module, in_space, schedule_time) AS TABLE
-- An argument such as `modules.module_id` must not mean a table of the macro: hence the names.
WITH temps AS (
    SELECT
        temp.module_id,
        temp.memory_space,
        temp.space,
        temp.allocation_index,
        temp.size_bytes,
        COALESCE(schedule_time, memory.peak_time) AS at_time
    FROM allocations AS temp
    INNER JOIN modules AS program ON program.module_id = temp.module_id
    INNER JOIN module_memory AS memory
        ON memory.module_id = temp.module_id
            AND memory.memory_space = temp.memory_space
    WHERE temp.module_id = module
        AND temp.is_temp
        AND memory.peak_time IS NOT NULL
        AND program.origin <> 'estimated'
        AND internal.is_in_space(in_space, temp.space, temp.memory_space)
),

-- What is taken of each temp allocation, and its end.
taken AS (
    SELECT
        temps.module_id,
        temps.allocation_index,
        live.offset_bytes AS low,
        live.offset_bytes + live.size_bytes AS high
    FROM temps
    INNER JOIN internal.buffer_extents AS live
        ON live.module_id = temps.module_id AND live.allocation_index = temps.allocation_index
    WHERE live.module_id = module AND temps.at_time BETWEEN live.occupied_from AND live.occupied_to
    UNION ALL
    SELECT module_id, allocation_index, size_bytes, size_bytes
    FROM temps
),

-- What is free before each of them, and after all that start lower.
gaps AS (
    SELECT
        module_id,
        allocation_index,
        low - COALESCE(
            MAX(high) OVER (
                PARTITION BY module_id, allocation_index
                ORDER BY low, high
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS gap_bytes
    FROM taken
)

SELECT
    temps.memory_space,
    temps.space,
    temps.allocation_index,
    temps.size_bytes,
    COALESCE(CAST(SUM(gaps.gap_bytes) AS BIGINT), 0) AS free_bytes,
    COALESCE(MAX(gaps.gap_bytes), 0) AS largest_hole_bytes,
    COUNT(gaps.gap_bytes) AS holes
FROM temps
LEFT JOIN gaps
    ON gaps.module_id = temps.module_id
        AND gaps.allocation_index = temps.allocation_index
        AND gaps.gap_bytes > 0
GROUP BY temps.memory_space, temps.space, temps.allocation_index, temps.size_bytes
ORDER BY temps.memory_space, temps.allocation_index;
COMMENT ON MACRO TABLE holes_at IS
'How fragmented a module''s temp allocations are at a time: what is free between the live buffers.

A row per temp allocation. A buffer that is larger than the largest hole does not fit, although as
much may be free. Estimated modules have no addresses, and no row.

module: a module_id, such as module(''llama-v5e'') finds
in_space: a memory space by name or number, ''hbm'' or 0; null for all
schedule_time: a position in the schedule; null for the peak of each space
size_bytes: the allocation''s size
free_bytes: the sum of the holes; size_bytes - free_bytes are occupied
largest_hole_bytes: the largest range of addresses that no live buffer takes
holes: how many such ranges there are';
