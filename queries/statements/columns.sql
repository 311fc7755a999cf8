-- The rows of `memhouse tables NAME`: the columns of table or view $1.
SELECT column_name AS "column", data_type AS "type", comment AS "meaning"
FROM DUCKDB_COLUMNS()
WHERE table_name = $1 AND NOT internal
ORDER BY column_index
