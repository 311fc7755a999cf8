-- The name of a run by its place from the end: run(-1) is the newest, run(-2) the one before.
--
-- Null if there are not so many. The order is that of run_at, of all branches.
--
-- n: -1, -2 and so on
CREATE MACRO run(n) AS (
    SELECT ordered.run_id
    FROM _ordered_runs AS ordered
    WHERE ordered.place = (SELECT COUNT(*) FROM runs) + 1 + n
);

-- The module that a name means today: a module_id.
--
-- Of several newest modules of the name, that with the largest peak in memory space 0. Null if
-- there is none.
--
-- named: a workload or its last folders, a module's name, or WORKLOAD/NAME; a whole name goes first
CREATE MACRO module(named) AS (
    SELECT
        MAX_BY(
            newest.module_id,
            (newest.workload || '/' || newest.module_name = named, newest.workload = named,
            COALESCE(memory.peak_bytes, 0))
        )
    FROM latest AS newest
    LEFT JOIN module_memory AS memory
        ON memory.module_id = newest.module_id AND memory.memory_space = 0
    WHERE ENDS_WITH('/' || newest.workload, '/' || named)
        OR ENDS_WITH('/' || newest.workload || '/' || newest.module_name, '/' || named)
);
