-- Modules that a user may mean by $1: an id, a name, or part of one; of run $2 if it is not
-- null, and of branch $3 if it is not null. A row per series, with its latest dump. exactness is
-- 4 for an id, 3 for a module's whole name, 2 for a workload, 1 for a part of a name. A series is
-- in the newest run of its workload, on the branch that comes first, also if its dump there is
-- unreadable.
--
-- A name that the default branch has is meant of this branch: main, else master, else the runs
-- without a branch, else the branch that had the name last. A series that is gone is meant only
-- if its name does not go on with another series.
WITH named AS (
    SELECT
        dumps.*,
        lineages.run_at,
        lineages.run_seq,
        lineages.branch,
        lineages.suite,
        lineages.run_number,
        lineages.branch_rank,
        history.series_id,
        dumps.workload || '/' || dumps.module_name AS name
    FROM dumps
    INNER JOIN internal.lineages ON lineages.run_id = dumps.run_id
    INNER JOIN internal.history ON history.dump_id = dumps.dump_id
    WHERE dumps.run_id = COALESCE($2, dumps.run_id)
        AND lineages.branch = COALESCE($3, lineages.branch)
        AND (
            CONTAINS(dumps.run_id || '/' || dumps.workload || '/' || dumps.module_name, $1)
            -- A run, and part of a name.
            OR (
                STARTS_WITH($1, dumps.run_id || '/')
                AND CONTAINS(
                    dumps.workload || '/' || dumps.module_name,
                    SUBSTRING($1, LENGTH(dumps.run_id) + 2)
                )
            )
            OR CAST(dumps.module_id AS VARCHAR) = $1
        )
),

-- An unreadable dump does not end a series, but it is not what is meant.
fitting AS (
    SELECT
        *,
        CASE
            WHEN CAST(module_id AS VARCHAR) = $1 THEN 4
            WHEN $1 IN (name, module_name, run_id || '/' || name) THEN 3
            WHEN $1 IN (workload, run_id || '/' || workload) THEN 2
            ELSE 1
        END AS exactness,
        MAX(run_number) OVER (PARTITION BY series_id) AS last_number,
        MAX(run_at) OVER (PARTITION BY series_id) AS last_run_at,
        MAX(run_number) OVER (PARTITION BY branch, suite, name, platform) AS told_number,
        FIRST_VALUE(branch) OVER (
            PARTITION BY name, platform
            ORDER BY branch_rank, run_at DESC, run_seq DESC
        ) AS told_branch
    FROM named
),

ranked AS (
    SELECT
        *,
        ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY run_number DESC) AS age
    FROM fitting
    WHERE module_id IS NOT NULL
        AND (exactness = 4 OR (branch = told_branch AND last_number = told_number))
)

SELECT
    ranked.dump_id,
    ranked.module_id,
    ranked.series_id,
    ranked.run_id,
    ranked.workload,
    ranked.module_name,
    ranked.occurrence,
    ranked.exactness,
    ranked.branch_rank = MIN(ranked.branch_rank) OVER (PARTITION BY ranked.workload)
    AND ranked.last_run_at
    = MAX(ranked.last_run_at) OVER (PARTITION BY ranked.workload, ranked.branch_rank)
        AS is_in_newest_run,
    modules.program_id,
    modules.origin,
    memory.peak_bytes
FROM ranked
LEFT JOIN modules ON modules.module_id = ranked.module_id
LEFT JOIN module_memory AS memory
    ON memory.module_id = ranked.module_id AND memory.memory_space = 0
WHERE ranked.age = 1
ORDER BY
    ranked.run_at DESC, ranked.run_seq DESC, ranked.workload, ranked.module_name, ranked.occurrence
