-- The buffers that the out-of-memory reports of run $1 list, the largest first.
SELECT *
FROM oom_buffers
WHERE run_id = $1
ORDER BY oom_id, rank
