-- The dumps of the groups $1, in order of their runs and of their places within a run.
WITH ordered_runs AS (
    SELECT run_id, ROW_NUMBER() OVER (ORDER BY run_at, run_id) AS run_number
    FROM runs
),

grouped AS (
    SELECT
        dumps.*,
        MIN(dumps.dump_id) OVER (PARTITION BY workload, module_name, platform) AS group_id
    FROM dumps
),

signatures AS (
    SELECT module_id, MIN(module_id) OVER (PARTITION BY entry_signature) AS signature_id
    FROM modules
    WHERE entry_signature IS NOT NULL
)

SELECT
    grouped.group_id,
    grouped.dump_id,
    ordered_runs.run_number,
    grouped.module_id,
    signatures.signature_id
FROM grouped
INNER JOIN ordered_runs ON ordered_runs.run_id = grouped.run_id
LEFT JOIN signatures ON signatures.module_id = grouped.module_id
WHERE grouped.group_id IN (SELECT UNNEST($1))
ORDER BY grouped.group_id, ordered_runs.run_number, grouped.occurrence, grouped.dump_id
