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
WITH whole_scopes AS (
    SELECT module_id, memory_space, scope, pass, counted_bytes
    FROM (
        SELECT *, MAX(depth) OVER (PARTITION BY module_id, memory_space) AS deepest
        FROM memory_by_scope
    ) AS scoped
    WHERE depth = deepest
),

both_dumps AS (
    SELECT
        history.dump_id,
        whole_scopes.memory_space,
        whole_scopes.scope,
        whole_scopes.pass,
        whole_scopes.counted_bytes,
        0 AS previous_bytes
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN whole_scopes ON whole_scopes.module_id = dumps.module_id
    UNION ALL
    SELECT
        history.dump_id,
        whole_scopes.memory_space,
        whole_scopes.scope,
        whole_scopes.pass,
        0,
        whole_scopes.counted_bytes
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.compared_dump_id
    INNER JOIN whole_scopes ON whole_scopes.module_id = dumps.module_id
),

changes AS (
    SELECT
        dump_id,
        memory_space,
        scope,
        pass,
        CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
        CAST(SUM(previous_bytes) AS BIGINT) AS previous_bytes
    FROM both_dumps
    GROUP BY dump_id, memory_space, scope, pass
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
FROM changes
INNER JOIN dumps ON dumps.dump_id = changes.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN lineages ON lineages.run_id = dumps.run_id
INNER JOIN history ON history.dump_id = changes.dump_id
LEFT JOIN dumps AS previous ON previous.dump_id = history.compared_dump_id
