-- The figures of series $1 in memory space $2, of metric $3, in order of runs; is_accepted if a
-- growth to the figure was accepted.
SELECT
    trends.*,
    EXISTS(
        SELECT 1
        FROM accepted_changes
        WHERE accepted_changes.dump_id = trends.dump_id
            AND accepted_changes.memory_space = $2
            AND accepted_changes.metric = $3
    ) AS is_accepted
FROM internal.trends AS trends
WHERE trends.series_id = $1 AND trends.memory_space = $2 AND trends.metric = $3
ORDER BY trends.run_number
