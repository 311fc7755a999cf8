-- The rows of `memhouse tables`.
SELECT table_name AS "table", estimated_size AS "rows", comment AS "holds"
FROM DUCKDB_TABLES()
WHERE table_name NOT IN ('schema_version', 'view_set')
ORDER BY table_oid
