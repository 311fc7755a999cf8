-- The stored chains on both sides of the runs that are followed anew: a row per chain of the
-- lineages of `followed_runs`, in which is_changed marks the runs after those.
--
-- A run that changed, or came to its lineage, has no lineage there. What is stored of such a run,
-- or of dumps that are gone, counts as before.
--
-- length, last_dump_id: of the chain before; null if it begins later
-- next_run_number: of its first dump after; null if there is none
-- workload, module_name, platform: of the dump with which it begins later
-- was_renamed: a dump that is gone or changed went on under another name
-- compared: by grade of the figures, what its first dump after with such figures is compared with;
--     the key is there only for grades of dumps after
WITH links AS (
    SELECT
        history.*,
        followed_runs.lineage,
        followed_runs.run_number,
        COALESCE(followed_runs.is_changed, FALSE) AS is_later,
        dumps.workload,
        dumps.module_name,
        dumps.platform,
        CASE WHEN history.level_index IS NOT NULL THEN modules.grade END AS grade
    FROM history
    LEFT JOIN dumps ON dumps.dump_id = history.dump_id
    LEFT JOIN followed_runs ON followed_runs.run_id = dumps.run_id
    LEFT JOIN modules ON modules.module_id = dumps.module_id
    WHERE dumps.dump_id IS NULL OR followed_runs.run_id IS NOT NULL
)

SELECT
    ANY_VALUE(lineage) AS lineage,
    series_id,
    ANY_VALUE(series_number) AS number,
    MAX(chain_index) FILTER (NOT is_later) AS length,
    MAX_BY(dump_id, chain_index) FILTER (NOT is_later) AS last_dump_id,
    MIN(run_number) FILTER (is_later) AS next_run_number,
    MIN_BY(workload, chain_index) FILTER (is_later) AS workload,
    MIN_BY(module_name, chain_index) FILTER (is_later) AS module_name,
    ARG_MIN_NULL(platform, chain_index) FILTER (is_later) AS platform,
    BOOL_OR(lineage IS NULL AND CONTAINS(CAST(matched_by AS TEXT), 'renamed')) AS was_renamed,
    [
        CASE
            WHEN BOOL_OR(is_later AND grade = 0)
                THEN [ARG_MIN_NULL(compared_dump_id, chain_index) FILTER (is_later AND grade = 0)]
        END,
        CASE
            WHEN BOOL_OR(is_later AND grade = 1)
                THEN [ARG_MIN_NULL(compared_dump_id, chain_index) FILTER (is_later AND grade = 1)]
        END,
        CASE
            WHEN BOOL_OR(is_later AND grade = 2)
                THEN [ARG_MIN_NULL(compared_dump_id, chain_index) FILTER (is_later AND grade = 2)]
        END
    ] AS compared
FROM links
GROUP BY series_id
