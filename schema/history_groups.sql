-- The groups of dumps that have a chain of their own: of run $1, or all if it is null.
--
-- group_id: the least dump_id of the group; most_dumps: the most dumps of one run.
WITH counted AS (
    SELECT
        workload,
        module_name,
        platform,
        MIN(dump_id) AS least_dump_id,
        COUNT(*) AS dumps,
        BOOL_OR(run_id = $1) AS is_in_run
    FROM dumps
    GROUP BY workload, module_name, platform, run_id
)

SELECT
    workload,
    module_name,
    platform,
    MIN(least_dump_id) AS group_id,
    MAX(dumps) AS most_dumps
FROM counted
GROUP BY workload, module_name, platform
HAVING $1 IS NULL OR BOOL_OR(is_in_run)
