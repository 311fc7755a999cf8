-- The rows of the shell's `.tables`.
SELECT table_name AS "name", 'table' AS "kind", comment AS "holds"
FROM duckdb_tables()
WHERE table_name NOT IN ('schema_version', 'view_set')
UNION ALL
SELECT view_name, 'view', comment
FROM duckdb_views()
WHERE NOT internal AND view_name NOT LIKE '\_%' ESCAPE '\'
ORDER BY "kind", "name"
