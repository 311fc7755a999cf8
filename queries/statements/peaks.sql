-- The rows of `memhouse peaks`: of run $1 and workload $2, where they are not null. Without a
-- run, the latest of each series. The last three columns tell which rows are of one program.
SELECT
    peaks.workload,
    peaks.module_name AS module,
    COALESCE(
        peaks.space_name,
        CASE WHEN peaks.memory_space = 0 THEN 'default' ELSE 'space ' || peaks.memory_space END
    ) AS space,
    peaks.peak_bytes,
    peaks.total_bytes,
    peaks.headroom_bytes,
    peaks.run_id AS run,
    peaks.padding_bytes,
    peaks.peak_instruction,
    peaks.memory_space,
    peaks.packing_bytes,
    peaks.origin,
    peaks.platform,
    peaks.status,
    modules.program_id
FROM peaks
INNER JOIN modules ON modules.module_id = peaks.module_id
WHERE peaks.workload = COALESCE($2, peaks.workload)
    AND (
        peaks.run_id = $1
        OR ($1 IS NULL AND peaks.dump_id IN (SELECT _newest.dump_id FROM _newest))
    )
ORDER BY
    peaks.memory_space,
    peaks.peak_bytes DESC NULLS LAST,
    peaks.run_at,
    peaks.workload,
    peaks.module_name
