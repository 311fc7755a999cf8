-- name: now
-- The programs of run $1 with their figures in memory space $2; value is that of metric $3.
--
-- A program without memory in the space has a row only in space 0. Estimates are held against
-- estimates only.
SELECT
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    history.series_id,
    history.series_number,
    history.compared_dump_id,
    history.previous_dump_id,
    history.is_new,
    history.cause,
    dumps.status,
    dumps.oom,
    entry_programs.is_entry,
    dumps.module_id,
    modules.program_id,
    modules.origin,
    modules.grade,
    dumps.device_memory_bytes,
    CASE WHEN $2 = 0 THEN module_memory.reserved_bytes END AS reserved_bytes,
    metrics.value,
    module_memory.peak_bytes,
    module_memory.argument_bytes,
    module_memory.alias_bytes,
    module_memory.padding_bytes
FROM dumps
INNER JOIN internal.history ON history.dump_id = dumps.dump_id
INNER JOIN internal.entry_programs ON entry_programs.dump_id = dumps.dump_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = $2
LEFT JOIN internal.metrics AS metrics
    ON metrics.module_id = dumps.module_id
        AND metrics.memory_space = $2
        AND metrics.metric = $3
WHERE dumps.run_id = $1 AND ($2 = 0 OR module_memory.module_id IS NOT NULL)
ORDER BY dumps.workload, dumps.module_name, history.series_number, dumps.dump_id;

-- name: accepted
-- The values that were accepted in memory space $2, up to run $1, the oldest first.
--
-- place: of the run, in the order of all runs.
SELECT
    accepted_changes.metric,
    history.series_id,
    accepted_changes.dump_id,
    dumps.run_id,
    ordered_runs.place,
    accepted_changes.accepted_bytes,
    accepted_changes.reason
FROM accepted_changes
INNER JOIN dumps ON dumps.dump_id = accepted_changes.dump_id
INNER JOIN internal.history ON history.dump_id = accepted_changes.dump_id
INNER JOIN internal.ordered_runs ON ordered_runs.run_id = dumps.run_id
WHERE accepted_changes.memory_space = $2
    AND ordered_runs.place <= (SELECT place FROM internal.ordered_runs WHERE run_id = $1)
ORDER BY ordered_runs.place, accepted_changes.accepted_at;

-- name: lineages
-- The branches of run $1's suite: of each the newest run before run $1 that has programs, null if
-- there is none, and how many such runs there are.
WITH ordered AS (
    SELECT
        lineages.run_id,
        lineages.branch,
        lineages.suite,
        ordered_runs.place,
        lineages.run_id IN (SELECT run_id FROM dumps) AS has_programs
    FROM internal.lineages
    INNER JOIN internal.ordered_runs ON ordered_runs.run_id = lineages.run_id
),

placed AS (
    SELECT
        ordered.run_id,
        ordered.branch,
        ordered.place,
        ordered.run_id = $1 AS is_judged,
        ordered.has_programs AND ordered.place < judged.place AS is_before
    FROM ordered
    INNER JOIN ordered AS judged ON judged.run_id = $1 AND judged.suite = ordered.suite
)

SELECT
    branch,
    MAX_BY(run_id, place) FILTER (is_before) AS newest_run_id,
    COUNT(*) FILTER (is_before) AS runs_before,
    BOOL_OR(is_judged) AS is_judged
FROM placed
GROUP BY branch
ORDER BY runs_before DESC, MAX(place) DESC;

-- name: gone
-- The dumps of run $2 that nothing of run $1 follows: both are runs of one history.
SELECT dumps.dump_id
FROM dumps
INNER JOIN internal.history ON history.dump_id = dumps.dump_id
WHERE dumps.run_id = $2
    AND history.series_id NOT IN (
        SELECT followed.series_id
        FROM internal.history AS followed
        INNER JOIN dumps AS now ON now.dump_id = followed.dump_id
        WHERE now.run_id = $1
    )
ORDER BY dumps.dump_id;

-- name: held
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
    INNER JOIN internal.history ON history.dump_id = asked.dump_id
),

accepted AS (
    SELECT named.dump_id AS named_dump_id, MAX(history.chain_index) AS chain_index
    FROM accepted_changes
    INNER JOIN internal.history ON history.dump_id = accepted_changes.dump_id
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
        metrics.value,
        $5 OR history.chain_index >= COALESCE(accepted.chain_index, 0) AS counts
    FROM named
    INNER JOIN internal.history
        ON history.series_id = named.series_id AND history.chain_index <= named.chain_index
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN modules
        ON modules.module_id = dumps.module_id
            AND COALESCE(named.grade = modules.grade, TRUE)
    INNER JOIN internal.metrics AS metrics
        ON metrics.module_id = dumps.module_id
            AND metrics.memory_space = $2
            AND metrics.metric = $3
    LEFT JOIN accepted ON accepted.named_dump_id = named.dump_id
    WHERE metrics.value IS NOT NULL
),

least AS (
    SELECT named_dump_id, dump_id, run_id, module_id, program_id, value
    FROM chain
    WHERE counts
    QUALIFY
        ROW_NUMBER() OVER (
            PARTITION BY named_dump_id
            ORDER BY CASE WHEN $6 THEN -value ELSE value END, chain_index DESC
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
        least.value AS least_bytes
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
    ordered_runs.place,
    dumps.module_id,
    modules.program_id,
    modules.origin,
    metrics.value,
    module_memory.argument_bytes,
    module_memory.alias_bytes,
    held.least_dump_id,
    held.least_run_id,
    held.least_module_id,
    held.least_program_id,
    held.least_bytes
FROM held
INNER JOIN dumps AS named_dumps ON named_dumps.dump_id = held.dump_id
INNER JOIN internal.entry_programs AS named_entries ON named_entries.dump_id = held.dump_id
LEFT JOIN internal.entry_programs AS held_entries ON held_entries.dump_id = held.held_dump_id
LEFT JOIN dumps ON dumps.dump_id = held.held_dump_id
LEFT JOIN internal.ordered_runs ON ordered_runs.run_id = dumps.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = $2
LEFT JOIN internal.metrics AS metrics
    ON metrics.module_id = dumps.module_id
        AND metrics.memory_space = $2
        AND metrics.metric = $3;

-- name: scoped
-- The most memory that a kernel of each of the modules $1 takes, on chip or reserved in HBM.
SELECT module_id, MAX(scoped_bytes) AS scoped_bytes
FROM internal.kernels
WHERE module_id IN (SELECT UNNEST(CAST($1 AS BIGINT[])))
GROUP BY module_id;

-- name: asleep
-- The last dump of each series of run $1's branch and suite, up to run $1.
SELECT
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform
FROM internal.lineages AS base
INNER JOIN internal.lineages
    ON lineages.branch = base.branch
        AND lineages.suite = base.suite
        AND lineages.run_number <= base.run_number
INNER JOIN dumps ON dumps.run_id = lineages.run_id
INNER JOIN internal.history ON history.dump_id = dumps.dump_id
WHERE base.run_id = $1
QUALIFY ROW_NUMBER() OVER (PARTITION BY history.series_id ORDER BY history.chain_index DESC) = 1;

-- name: line
-- The source line whose buffers grow most from module $1 to module $2 at the peaks of memory
-- space $3, by their counted bytes. If $1 is null: the line that most of the peak belongs to.
SELECT
    source_file,
    source_line,
    CAST(
        SUM(CASE WHEN module_id = $2 THEN counted_at_peak_bytes ELSE -counted_at_peak_bytes END)
        AS BIGINT
    ) AS change_bytes
FROM internal.buffers
WHERE module_id IN ($1, $2)
    AND memory_space = $3
    AND is_live_at_peak
    AND source_file IS NOT NULL
GROUP BY source_file, source_line
HAVING change_bytes > 0
ORDER BY change_bytes DESC, source_file, source_line
LIMIT 1;

-- name: reader_versions
-- The versions of the readers that read the stored modules.
SELECT DISTINCT reader_version FROM modules;
