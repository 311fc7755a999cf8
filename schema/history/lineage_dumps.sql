-- The dumps of `followed_runs`, from each lineage's first changed run on, and the dumps $1 before
-- it; in order of lineages, runs, groups and places in the group.
WITH memory AS (
    SELECT
        module_id,
        BOOL_OR(peak_bytes IS NOT NULL) AS has_figures,
        MAX(CASE WHEN memory_space = 0 THEN total_bytes END) AS total_bytes
    FROM module_memory
    GROUP BY module_id
)

SELECT
    followed_runs.lineage,
    followed_runs.run_number,
    dumps.dump_id,
    dumps.workload,
    dumps.module_name,
    dumps.platform,
    dumps.occurrence,
    dumps.module_id,
    modules.program_id,
    modules.reader_version,
    -- A signature can be long: comparing numbers is cheaper.
    CASE WHEN modules.entry_signature IS NOT NULL THEN HASH(modules.entry_signature) END
        AS signature_id,
    modules.skeleton_id,
    memory.total_bytes,
    COALESCE(memory.total_bytes, 0) < 1048576 AND COALESCE(modules.schedule_length, 0) < 50
        AS is_tiny,
    CASE WHEN memory.has_figures THEN modules.grade END AS grade,
    dumps.status || CASE WHEN dumps.oom THEN ', oom' ELSE '' END AS health
FROM followed_runs
INNER JOIN dumps ON dumps.run_id = followed_runs.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN memory ON memory.module_id = dumps.module_id
WHERE followed_runs.is_changed OR dumps.dump_id IN (SELECT UNNEST($1))
ORDER BY
    followed_runs.lineage,
    followed_runs.run_number,
    dumps.workload,
    dumps.module_name,
    dumps.platform NULLS FIRST,
    dumps.occurrence,
    dumps.dump_id
