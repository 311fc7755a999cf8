-- How the metrics of one series changed from run to run.
--
-- The rows of `trends` of the series, in order of its runs.
--
-- series: a series_id, see `trends`
CREATE MACRO history_of(series) AS TABLE
SELECT *
FROM trends AS changes
WHERE changes.series_id = series
ORDER BY changes.run_number, changes.memory_space, changes.metric;
