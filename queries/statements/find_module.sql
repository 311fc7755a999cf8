-- Modules that a user may mean by $1: an id, a name, or part of one; of run $2 if it is not
-- null. A row per series, with its latest dump. exactness is 3 for an id, 2 for a whole name.
WITH named AS (
    SELECT
        dumps.*,
        runs.run_at,
        history.series_id,
        dumps.workload || '/' || dumps.module_name AS name
    FROM dumps
    INNER JOIN runs ON runs.run_id = dumps.run_id
    INNER JOIN history ON history.dump_id = dumps.dump_id
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
        ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY run_at DESC, run_id DESC) AS age
    FROM named
    WHERE CONTAINS(run_id || '/' || name, $1) OR CAST(module_id AS VARCHAR) = $1
)

SELECT
    fitting.dump_id,
    fitting.module_id,
    fitting.run_id,
    fitting.workload,
    fitting.module_name,
    fitting.occurrence,
    fitting.exactness,
    modules.origin
FROM fitting
LEFT JOIN modules ON modules.module_id = fitting.module_id
WHERE fitting.age = 1
ORDER BY fitting.workload, fitting.module_name, fitting.occurrence
