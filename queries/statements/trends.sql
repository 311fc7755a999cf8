-- The rows of `memhouse trends`: of branch $1, in memory space $2, of metric $3, and of the
-- series $4 if it is not null. A series stands in the order of the name that it has now.
WITH named AS (
    SELECT history.series_id, dumps.workload, dumps.module_name
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    WHERE history.is_last
)

SELECT trends.*
FROM _dump_trends AS trends
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
    trends.run_number
