-- The runs in order: of equal times the one that entered first.
--
-- A row per run.
--
-- run_id: the run
-- run_at: when its programs were compiled (UTC)
-- run_seq: the order in which runs first entered
-- place: the run's place in the order of all runs, of any branch, from 1
SELECT
    run_id,
    run_at,
    run_seq,
    ROW_NUMBER() OVER (ORDER BY run_at, run_seq) AS place
FROM runs
