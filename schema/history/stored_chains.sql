-- The chains as they stand in the runs of `followed_runs` before the first changed one of their
-- lineage: a row per chain.
--
-- last_dump_id: its last dump; born_dump_id: its first; grade0_id, grade1_id, grade2_id: its last
-- dumps with figures of each grade, null if there are none, with their level_index.
WITH with_figures AS (
    SELECT DISTINCT module_memory.module_id, modules.grade
    FROM module_memory
    INNER JOIN modules ON modules.module_id = module_memory.module_id
    WHERE module_memory.peak_bytes IS NOT NULL
),

links AS (
    SELECT
        followed_runs.lineage,
        history.series_id,
        history.series_number,
        history.dump_id,
        history.chain_index,
        history.level_index,
        with_figures.grade
    FROM history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
    INNER JOIN followed_runs ON followed_runs.run_id = dumps.run_id
    LEFT JOIN with_figures ON with_figures.module_id = dumps.module_id
    WHERE NOT followed_runs.is_changed
)

SELECT
    ANY_VALUE(lineage) AS lineage,
    series_id,
    ANY_VALUE(series_number) AS number,
    MAX(chain_index) AS length,
    MIN_BY(dump_id, chain_index) AS born_dump_id,
    MAX_BY(dump_id, chain_index) AS last_dump_id,
    MAX_BY(dump_id, chain_index) FILTER (grade = 0) AS grade0_id,
    MAX_BY(level_index, chain_index) FILTER (grade = 0) AS grade0_level_index,
    MAX_BY(dump_id, chain_index) FILTER (grade = 1) AS grade1_id,
    MAX_BY(level_index, chain_index) FILTER (grade = 1) AS grade1_level_index,
    MAX_BY(dump_id, chain_index) FILTER (grade = 2) AS grade2_id,
    MAX_BY(level_index, chain_index) FILTER (grade = 2) AS grade2_level_index
FROM links
GROUP BY series_id
ORDER BY born_dump_id
