-- The rows that `memhouse check` judges: each series of run $1 in memory space $2 with metric
-- $5, and what the metric is held against: run $3, or, if $3 is null, the best so far if $4,
-- else the run before. An accepted growth is the baseline for the run it was accepted in.
-- Against an older run or the best, a growth that was accepted since then is the baseline too.
-- The largest value that was ever accepted is within all limits.
WITH judged AS (
    SELECT *
    FROM trends
    WHERE run_id = $1 AND memory_space = $2 AND metric = $5
),

baseline AS (
    SELECT
        trends.series_id,
        trends.module_id,
        trends.value_bytes,
        trends.origin,
        dumps.compiler,
        dumps.flags_id,
        modules.entry_signature
    FROM trends
    INNER JOIN dumps ON dumps.dump_id = trends.dump_id
    LEFT JOIN modules ON modules.module_id = trends.module_id
    WHERE trends.run_id = $3 AND trends.memory_space = $2 AND trends.metric = $5
),

accepted AS (
    SELECT
        accepted_changes.series_id,
        MAX(accepted_changes.accepted_bytes) AS ever_bytes,
        MAX(accepted_changes.accepted_bytes) FILTER (
            accepted_changes.run_id = $1
            OR $4
            OR runs.run_at > (SELECT run_at FROM runs WHERE run_id = $3)
        ) AS bytes,
        MAX_BY(accepted_changes.reason, accepted_changes.accepted_at) AS reason
    FROM accepted_changes
    INNER JOIN runs ON runs.run_id = accepted_changes.run_id
    WHERE accepted_changes.memory_space = $2
        AND accepted_changes.metric = $5
        AND runs.run_at <= (SELECT run_at FROM runs WHERE run_id = $1)
    GROUP BY accepted_changes.series_id
),

held AS (
    SELECT
        judged.*,
        CASE
            WHEN $3 IS NOT NULL THEN baseline.value_bytes
            WHEN $4 THEN judged.best_bytes
            ELSE judged.previous_bytes
        END AS baseline_bytes,
        accepted.bytes AS accepted_bytes,
        accepted.ever_bytes,
        accepted.reason,
        dumps.device_memory_bytes,
        CASE
            WHEN $3 IS NULL THEN judged.content_changed
            ELSE judged.module_id <> baseline.module_id
        END AS other_content,
        CASE
            WHEN $3 IS NULL THEN judged.signature_changed
            ELSE modules.entry_signature <> baseline.entry_signature
        END AS other_signature,
        CASE
            WHEN $3 IS NULL THEN judged.compiler_changed
            ELSE dumps.compiler <> baseline.compiler
        END AS other_compiler,
        CASE
            WHEN $3 IS NULL THEN judged.flags_changed
            ELSE dumps.flags_id <> baseline.flags_id
        END AS other_flags
    FROM judged
    INNER JOIN dumps ON dumps.dump_id = judged.dump_id
    LEFT JOIN modules ON modules.module_id = judged.module_id
    -- An estimate is held against estimates only.
    LEFT JOIN baseline
        ON baseline.series_id = judged.series_id
            AND (baseline.origin = 'estimated') = (judged.origin = 'estimated')
    LEFT JOIN accepted ON accepted.series_id = judged.series_id
)

SELECT
    series_id,
    workload,
    module_name,
    platform,
    occurrence,
    memory_space,
    dump_id,
    status,
    oom,
    value_bytes AS now_bytes,
    CASE WHEN accepted_bytes > baseline_bytes THEN accepted_bytes ELSE baseline_bytes END
        AS baseline_bytes,
    CASE WHEN accepted_bytes > baseline_bytes THEN reason END AS accepted_reason,
    ever_bytes AS accepted_bytes,
    CASE WHEN $4 THEN 'best so far' ELSE COALESCE($3, previous_run_id) END AS held_against,
    COALESCE($3, previous_run_id) AS before_run_id,
    device_memory_bytes,
    other_signature AS signature_changed,
    other_compiler AS compiler_changed,
    other_flags AS flags_changed,
    other_content AS content_changed,
    origin
FROM held
ORDER BY workload, module_name, platform, occurrence
