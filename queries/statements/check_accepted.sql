-- The values that were accepted in memory space $2, up to run $1, the oldest first.
--
-- place: of the run, in the order of all runs.
SELECT
    accepted_changes.metric,
    history.series_id,
    accepted_changes.dump_id,
    dumps.run_id,
    _ordered_runs.place,
    accepted_changes.accepted_bytes,
    accepted_changes.reason
FROM accepted_changes
INNER JOIN dumps ON dumps.dump_id = accepted_changes.dump_id
INNER JOIN history ON history.dump_id = accepted_changes.dump_id
INNER JOIN _ordered_runs ON _ordered_runs.run_id = dumps.run_id
WHERE accepted_changes.memory_space = $2
    AND _ordered_runs.place <= (SELECT place FROM _ordered_runs WHERE run_id = $1)
ORDER BY _ordered_runs.place, accepted_changes.accepted_at
