CREATE OR REPLACE MACRO history_of(series) AS TABLE
SELECT *
FROM trends AS changes
WHERE changes.series_id = series
ORDER BY changes.run_number, changes.metric;
COMMENT ON MACRO TABLE history_of IS
'How the metrics of one series changed from run to run, of the main memory.

The rows of `trends` of the series, in order of its runs.

series: a series_id, see `trends`';
