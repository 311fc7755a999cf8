-- How each scope's share of the peak changed from run to run.
--
-- A row per dump, memory space, whole scope and pass that the dump or the one before it has: see
-- `memory_by_scope`. The rows of a dump and space add up to its peak, and their changes to the
-- peak's change. A dump is compared with the dump that `trends` compares it with.
--
-- run_id: the run
-- run_at: when the run's programs were compiled (UTC)
-- branch: the run's branch, empty without one
-- suite: the run's suite, empty without one
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- platform: cpu, gpu or tpu
-- series_id: the series, see `history`
-- memory_space: the memory space
-- scope: the scope, all its steps; empty for arguments and for what is in no scope
-- pass: argument, forward, backward, rematerialised, optimizer or other; null if not known
-- counted_bytes: what the scope adds to the peak; 0 if it is gone
-- previous_bytes: the same in previous_run_id; 0 if the scope is new, null if there is no such run
-- change_bytes: counted_bytes - previous_bytes
-- previous_run_id: the run that the row is compared with
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
WITH sides AS (
    SELECT TRUE AS is_previous
    UNION ALL SELECT FALSE
),

-- Each content and the content that it is compared with: many dumps have the same two.
contents AS (
    SELECT DISTINCT
        dumps.module_id,
        previous.module_id AS previous_module_id
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
),

spaces AS (
    SELECT
        contents.module_id,
        contents.previous_module_id,
        sides.is_previous,
        module_memory.module_id AS shown_module_id,
        module_memory.memory_space,
        module_memory.peak_time
    FROM contents
    CROSS JOIN sides
    INNER JOIN module_memory
        ON module_memory.module_id
            = CASE
                WHEN sides.is_previous THEN contents.previous_module_id ELSE contents.module_id
            END
),

-- The counts of `_counted_buffers` at the peak, here for each pair of contents, so that a filter on
-- module_id comes before the window.
counted AS (
    SELECT
        spaces.module_id,
        spaces.previous_module_id,
        spaces.is_previous,
        spaces.shown_module_id,
        spaces.memory_space,
        "values".pass,
        COALESCE("values".origin_instruction_id, "values".instruction_id) AS held_instruction_id,
        CASE
            WHEN buffers.allocation_index IS NOT NULL THEN buffers.size_bytes
            ELSE GREATEST(
                    "values".offset_bytes + "values".size_bytes - GREATEST(
                        "values".offset_bytes,
                        COALESCE(
                            MAX("values".offset_bytes + "values".size_bytes) OVER (
                                PARTITION BY
                                    spaces.module_id,
                                    spaces.previous_module_id,
                                    spaces.is_previous,
                                    buffers.allocation_index,
                                    temps.allocation_index
                                ORDER BY
                                    "values".offset_bytes,
                                    "values".size_bytes DESC,
                                    "values".value_id
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                            ),
                            0
                        )
                    ),
                    0
                )
        END AS counted_bytes
    FROM spaces
    INNER JOIN _buffer_times AS buffers
        ON buffers.module_id = spaces.shown_module_id
            AND buffers.start_time <= spaces.peak_time
            AND buffers.end_time >= spaces.peak_time
            AND COALESCE(buffers.memory_space, spaces.memory_space) = spaces.memory_space
    -- Each join finds its row. As inner joins DuckDB would expect few rows of them, and hash the
    -- larger side.
    LEFT JOIN "values"
        ON "values".module_id = spaces.shown_module_id
            AND "values".value_id = buffers.value_id
    LEFT JOIN allocations AS temps
        ON temps.module_id = spaces.shown_module_id
            AND temps.allocation_index = "values".allocation_index
            AND temps.memory_space = spaces.memory_space
            AND temps.is_temp
    WHERE buffers.allocation_index IS NOT NULL OR temps.allocation_index IS NOT NULL
),

changes AS (
    SELECT
        counted.module_id,
        counted.previous_module_id,
        counted.memory_space,
        COALESCE(scopes.scope, '') AS scope,
        counted.pass,
        CAST(SUM(CASE WHEN counted.is_previous THEN 0 ELSE counted.counted_bytes END) AS BIGINT)
            AS counted_bytes,
        CAST(SUM(CASE WHEN counted.is_previous THEN counted.counted_bytes ELSE 0 END) AS BIGINT)
            AS previous_bytes
    FROM counted
    LEFT JOIN instructions
        ON instructions.module_id = counted.shown_module_id
            AND instructions.instruction_id = counted.held_instruction_id
    LEFT JOIN scopes
        ON scopes.module_id = counted.shown_module_id
            AND scopes.scope_id = instructions.scope_id
    GROUP BY 1, 2, 3, 4, 5
)

SELECT
    dumps.run_id,
    runs.run_at,
    lineages.branch,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    history.series_id,
    changes.memory_space,
    changes.scope,
    changes.pass,
    changes.counted_bytes,
    CASE WHEN history.compared_dump_id IS NOT NULL THEN changes.previous_bytes END
        AS previous_bytes,
    CASE
        WHEN history.compared_dump_id IS NOT NULL
            THEN changes.counted_bytes - changes.previous_bytes
    END AS change_bytes,
    previous.run_id AS previous_run_id,
    dumps.dump_id,
    dumps.module_id
FROM history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN lineages ON lineages.run_id = dumps.run_id
LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
INNER JOIN changes
    ON changes.module_id = dumps.module_id
        AND COALESCE(changes.previous_module_id, 0) = COALESCE(previous.module_id, 0)
