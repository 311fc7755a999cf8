-- The rows of `memhouse modules`: of run $1 and workload $2, where they are not null.
SELECT
    dumps.run_id AS run,
    dumps.workload,
    dumps.module_name AS module,
    CASE WHEN dumps.oom THEN dumps.status || ', oom' ELSE dumps.status END AS status,
    peaks.peak_bytes,
    modules.origin,
    peaks.total_bytes,
    dumps.module_id,
    modules.schedule_length AS instructions,
    dumps.platform,
    COALESCE(dumps.device_kind, dumps.target) AS device,
    dumps.compiler,
    dumps.occurrence,
    entry_programs.is_entry,
    peaks.headroom_bytes
FROM dumps
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN internal.entry_programs ON entry_programs.dump_id = dumps.dump_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN internal.peaks AS peaks ON peaks.dump_id = dumps.dump_id AND peaks.memory_space = 0
WHERE dumps.run_id = COALESCE($1, dumps.run_id)
    AND dumps.workload = COALESCE($2, dumps.workload)
ORDER BY
    runs.run_at, runs.run_seq, dumps.workload, dumps.module_number, dumps.module_name
