-- Modules that a user may mean by $1: an id, a name, or part of one; of run $2 if it is given.
-- A row per series, with its latest dump; `exactness` is 2 where $1 is a whole name.
WITH named AS (
    SELECT
        dumps.*,
        runs.run_at,
        dumps.workload || '/' || dumps.module_name AS name
    FROM dumps
    INNER JOIN runs ON runs.run_id = dumps.run_id
    WHERE dumps.module_id IS NOT NULL AND dumps.run_id = COALESCE($2, dumps.run_id)
),

fitting AS (
    SELECT
        *,
        CASE
            WHEN CAST(module_id AS VARCHAR) = $1 THEN 3
            WHEN $1 IN (name, workload, module_name, run_id || '/' || name) THEN 2
            ELSE 1
        END AS exactness,
        ROW_NUMBER() OVER (
            PARTITION BY workload, module_name, platform, occurrence
            ORDER BY run_at DESC, run_id DESC
        ) AS age
    FROM named
    WHERE CONTAINS(run_id || '/' || name, $1) OR CAST(module_id AS VARCHAR) = $1
)

SELECT dump_id, module_id, run_id, workload, module_name, occurrence, exactness
FROM fitting
WHERE age = 1
ORDER BY workload, module_name, occurrence
