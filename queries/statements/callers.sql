-- Who calls each Python frame of module $1: up to $2 frames outwards, the nearest first.
WITH RECURSIVE walked AS (
    SELECT
        stack_frame_id,
        parent_frame_id,
        0 AS depth,
        CAST(NULL AS VARCHAR) AS called_by
    FROM stack_frames
    WHERE module_id = $1
    UNION ALL
    SELECT
        walked.stack_frame_id,
        callers.parent_frame_id,
        walked.depth + 1,
        CONCAT_WS(
            ', ',
            walked.called_by,
            callers."function" || ' at '
            || REGEXP_EXTRACT(callers.file, '[^/]*$') || ':' || callers.line
        )
    FROM walked
    INNER JOIN stack_frames AS callers
        ON callers.module_id = $1
            AND callers.stack_frame_id = walked.parent_frame_id
    WHERE walked.depth < $2
)

SELECT stack_frame_id, MAX_BY(called_by, depth) AS called_by
FROM walked
WHERE called_by IS NOT NULL
GROUP BY stack_frame_id
ORDER BY stack_frame_id
