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
    AND COALESCE(
        CAST(in_space AS VARCHAR)
        IN (CAST(live.space AS VARCHAR), CAST(live.memory_space AS VARCHAR)),
        TRUE
    )
    AND CASE
        WHEN schedule_time IS NULL THEN live.is_live_at_peak
        ELSE schedule_time BETWEEN live.taken_from AND live.taken_to
    END;
COMMENT ON MACRO TABLE buffers_at IS
'What takes a module''s memory at a time, buffer by buffer: `memhouse buffers --at`.

A row per row of `buffers` that takes memory then, with the same columns but for those of the dump
and the peak. counted_bytes, the last column, add up to what is occupied at the time.

module: a module_id, such as module(''llama-v5e'') finds
in_space: a memory space by name or number, ''hbm'' or 0; null for all
schedule_time: a position in the schedule; null for the peak of each space
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
    taken_from,
    taken_to,
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

module: a module_id, such as module(''llama-v5e'') finds';
