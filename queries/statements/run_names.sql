-- The runs' names, the latest first.
SELECT run_id FROM runs ORDER BY run_at DESC, run_seq DESC
