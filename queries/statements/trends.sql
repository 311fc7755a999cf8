-- The rows of `memhouse trends`: of branch $1, in memory space $2, of metric $3, and of the
-- series $4 if it is not null. A series stands in the order of the name that it has now.
WITH named AS (
    SELECT history.series_id, dumps.workload, dumps.module_name
    FROM internal.history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    WHERE history.is_last
)

SELECT trends.*
FROM internal.trends AS trends
INNER JOIN named ON named.series_id = trends.series_id
WHERE trends.branch = $1
    AND trends.memory_space = $2
    AND trends.metric = $3
    -- A join would be made after the view has worked out all series.
    AND ($4 IS NULL OR LIST_CONTAINS(CAST($4 AS BIGINT[]), trends.series_id))
ORDER BY
    named.workload,
    named.module_name,
    trends.platform,
    trends.suite,
    trends.series_number,
    trends.series_id,
    trends.run_number;

-- name: gone
-- The series among $1 that a run lacks and the run before had, with their last dumps.
SELECT
    gone.series_id,
    gone.run_id,
    runs.run_at,
    lineages.run_number,
    lineages.suite,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.run_id AS previous_run,
    modules.program_id
FROM internal.gone
INNER JOIN runs ON runs.run_id = gone.run_id
INNER JOIN internal.lineages ON lineages.run_id = gone.run_id
INNER JOIN dumps ON dumps.dump_id = gone.last_dump_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
WHERE gone.series_id IN (SELECT UNNEST($1));

-- name: series_of
-- The series that workload $1 ever had.
SELECT DISTINCT history.series_id
FROM internal.history
INNER JOIN dumps ON dumps.dump_id = history.dump_id
WHERE dumps.workload = $1;
