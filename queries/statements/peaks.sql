-- The rows of `memhouse peaks`: of run $1 and workload $2, where they are not null. Without a
-- run, the latest of each series. The last three columns tell which rows are of one program.
WITH chosen AS MATERIALIZED (
    SELECT dump_id
    FROM dumps
    WHERE run_id = $1
    UNION ALL
    SELECT dump_id
    FROM internal.newest
    WHERE $1 IS NULL
),

found AS MATERIALIZED (
    SELECT peaks.*
    FROM chosen
    INNER JOIN internal.peaks ON peaks.dump_id = chosen.dump_id
    WHERE peaks.workload = COALESCE($2, peaks.workload)
),

-- Only the instructions of these peaks: joining all of a year's costs as much as all the rest.
named AS (
    SELECT module_id, instruction_id, instruction
    FROM instructions
    WHERE instruction_id IN (SELECT found.peak_instruction_id FROM found)
)

SELECT
    found.workload,
    found.module_name AS module,
    CASE
        WHEN found.space <> 'other' THEN CAST(found.space AS VARCHAR)
        ELSE COALESCE(found.space_name, 'space ' || found.memory_space)
    END AS space,
    found.peak_bytes,
    found.peak_upper_bytes,
    found.total_bytes,
    found.headroom_bytes,
    found.run_id AS run,
    found.padding_bytes,
    named.instruction AS peak_instruction,
    found.memory_space,
    found.is_entry,
    found.fragmentation_bytes,
    found.origin,
    found.platform,
    found.status,
    modules.program_id
FROM found
INNER JOIN modules ON modules.module_id = found.module_id
LEFT JOIN named
    ON named.module_id = found.module_id
        AND named.instruction_id = found.peak_instruction_id
ORDER BY
    found.memory_space,
    found.peak_bytes DESC NULLS LAST,
    found.run_at DESC,
    found.workload,
    found.module_name
