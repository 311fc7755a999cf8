-- The rows of `trends_by_space`, and for each run that lacks a series a row without a value.
-- number tells programs of one name in a run from each other; is_shown: a program that is an entry
-- program in any of the runs.
WITH nights AS (
    SELECT * FROM trends_by_space
    UNION ALL
    SELECT
        trends_by_space.* REPLACE (
            missing.run_id AS run_id,
            missing.run_at AS run_at,
            NULL AS value,
            NULL AS change,
            'missing' AS cause
        )
    FROM missing
    INNER JOIN trends_by_space ON trends_by_space.dump_id = missing.last_dump_id
)

SELECT
    *,
    ROW_NUMBER() OVER (
        PARTITION BY run_id, workload, module_name, memory_space, metric
        ORDER BY platform DESC NULLS LAST, series_number, series_id
    ) AS number,
    BOOL_OR(is_entry) OVER (PARTITION BY branch, workload, module_name) AS is_shown
FROM nights;
