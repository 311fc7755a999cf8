-- The rows of `memhouse runs`.
SELECT * FROM runs_summary ORDER BY run_at, run_id
