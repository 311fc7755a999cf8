-- What would go with the runs $1: their dumps, and the modules that only these dumps point to.
SELECT
    COUNT(*) FILTER (WHERE is_chosen) AS dumps,
    COUNT(DISTINCT module_id) FILTER (WHERE is_chosen)
    - COUNT(DISTINCT module_id) FILTER (WHERE is_chosen AND is_kept) AS modules
FROM (
    SELECT
        module_id,
        is_chosen,
        BOOL_OR(NOT is_chosen) OVER (PARTITION BY module_id) AS is_kept
    FROM (
        SELECT module_id, run_id IN (SELECT UNNEST($1)) AS is_chosen
        FROM dumps
    ) AS chosen
) AS found
