-- The most memory that a kernel of each program reserves for itself, from run to run.
--
-- A row per dump and memory space that a kernel reserves in, see `kernels`.
--
-- run_id: the run, usually a night
-- run_at: when the run's programs were compiled (UTC)
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- series_id: the series, see `history`
-- memory_space: where it reserves: 0 is HBM, 1 VMEM; null if not known
-- scoped_bytes: the most that a kernel reserves
-- limit_bytes: what a kernel may reserve
-- headroom_bytes: limit_bytes - scoped_bytes
-- previous_bytes: scoped_bytes of the program before, null if it has none in this memory space
-- change_bytes: scoped_bytes - previous_bytes
-- dump_id: the dump, see `dumps`
WITH largest AS (
    SELECT
        dump_id,
        memory_space,
        MAX(scoped_bytes) AS scoped_bytes,
        MAX(limit_bytes) AS limit_bytes
    FROM kernels
    WHERE scoped_bytes > 0
    GROUP BY dump_id, memory_space
)

SELECT
    dumps.run_id,
    runs.run_at,
    dumps.workload,
    dumps.module_name,
    history.series_id,
    largest.memory_space,
    largest.scoped_bytes,
    largest.limit_bytes,
    largest.limit_bytes - largest.scoped_bytes AS headroom_bytes,
    before.scoped_bytes AS previous_bytes,
    largest.scoped_bytes - before.scoped_bytes AS change_bytes,
    largest.dump_id
FROM largest
INNER JOIN dumps ON dumps.dump_id = largest.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN history ON history.dump_id = largest.dump_id
LEFT JOIN largest AS before
    ON before.dump_id = history.previous_dump_id
        AND COALESCE(before.memory_space, -1) = COALESCE(largest.memory_space, -1)
