-- What the shell completes: tables, views, their columns, and SQL's words.
SELECT DISTINCT column_name FROM duckdb_columns() WHERE NOT internal
UNION
SELECT table_name FROM duckdb_tables()
UNION
SELECT view_name FROM duckdb_views() WHERE NOT internal
UNION
SELECT UPPER(keyword_name) FROM duckdb_keywords() WHERE keyword_category = 'reserved'
ORDER BY 1
