-- What the dumps $1 have in memory space $2, of metric $3: what a run is held against.
--
-- $7 says of each dump which grade of figures it is held against; null if that does not matter.
-- With $4, a dump without such figures is replaced by the last one of its chain before it that
-- has them. place: of the run, in the order of all runs.
-- least_*: the least value of the chain up to the dump since the last value that was accepted;
-- of several the latest. With $5 it is the least of all time, and is what is held against. With
-- $6 the metric is better if it is higher, and the value is the largest.
WITH asked AS (
    SELECT
        UNNEST(CAST($1 AS BIGINT[])) AS dump_id,
        UNNEST(CAST($7 AS INTEGER[])) AS grade
),

named AS (
    SELECT
        asked.dump_id,
        asked.grade,
        history.series_id,
        history.series_number,
        history.chain_index
    FROM asked
    INNER JOIN history ON history.dump_id = asked.dump_id
),

accepted AS (
    SELECT named.dump_id AS named_dump_id, MAX(history.chain_index) AS chain_index
    FROM accepted_changes
    INNER JOIN history ON history.dump_id = accepted_changes.dump_id
    INNER JOIN named
        ON named.series_id = history.series_id AND named.chain_index >= history.chain_index
    WHERE accepted_changes.memory_space = $2 AND accepted_changes.metric = $3
    GROUP BY named.dump_id
),

chain AS (
    SELECT
        named.dump_id AS named_dump_id,
        dumps.dump_id,
        dumps.run_id,
        dumps.module_id,
        modules.program_id,
        history.chain_index,
        metrics.value_bytes,
        $5 OR history.chain_index >= COALESCE(accepted.chain_index, 0) AS counts
    FROM named
    INNER JOIN history
        ON history.series_id = named.series_id AND history.chain_index <= named.chain_index
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN modules
        ON modules.module_id = dumps.module_id
            AND COALESCE(named.grade = modules.grade, TRUE)
    INNER JOIN _module_metrics AS metrics
        ON metrics.module_id = dumps.module_id
            AND metrics.memory_space = $2
            AND metrics.metric = $3
    LEFT JOIN accepted ON accepted.named_dump_id = named.dump_id
    WHERE metrics.value_bytes IS NOT NULL
),

least AS (
    SELECT named_dump_id, dump_id, run_id, module_id, program_id, value_bytes
    FROM chain
    WHERE counts
    QUALIFY
        ROW_NUMBER() OVER (
            PARTITION BY named_dump_id
            ORDER BY CASE WHEN $6 THEN -value_bytes ELSE value_bytes END, chain_index DESC
        ) = 1
),

last AS (
    SELECT named_dump_id, MAX_BY(dump_id, chain_index) AS dump_id
    FROM chain
    WHERE $4 OR dump_id = named_dump_id
    GROUP BY named_dump_id
),

held AS (
    SELECT
        named.*,
        CASE WHEN $5 THEN least.dump_id ELSE last.dump_id END AS held_dump_id,
        least.dump_id AS least_dump_id,
        least.run_id AS least_run_id,
        least.module_id AS least_module_id,
        least.program_id AS least_program_id,
        least.value_bytes AS least_bytes
    FROM named
    LEFT JOIN last ON last.named_dump_id = named.dump_id
    LEFT JOIN least ON least.named_dump_id = named.dump_id
)

SELECT
    held.dump_id AS named_dump_id,
    named_dumps.run_id AS named_run_id,
    named_dumps.workload,
    named_dumps.module_name,
    named_dumps.platform,
    named_dumps.host,
    named_entries.is_entry OR COALESCE(held_entries.is_entry, FALSE) AS is_entry,
    held.series_id,
    held.series_number,
    held.held_dump_id AS dump_id,
    dumps.run_id,
    _ordered_runs.place,
    dumps.module_id,
    modules.program_id,
    modules.origin,
    metrics.value_bytes,
    module_memory.argument_bytes,
    module_memory.alias_bytes,
    held.least_dump_id,
    held.least_run_id,
    held.least_module_id,
    held.least_program_id,
    held.least_bytes
FROM held
INNER JOIN dumps AS named_dumps ON named_dumps.dump_id = held.dump_id
INNER JOIN _entry_programs AS named_entries ON named_entries.dump_id = held.dump_id
LEFT JOIN _entry_programs AS held_entries ON held_entries.dump_id = held.held_dump_id
LEFT JOIN dumps ON dumps.dump_id = held.held_dump_id
LEFT JOIN _ordered_runs ON _ordered_runs.run_id = dumps.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = $2
LEFT JOIN _module_metrics AS metrics
    ON metrics.module_id = dumps.module_id
        AND metrics.memory_space = $2
        AND metrics.metric = $3
