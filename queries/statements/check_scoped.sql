-- The most memory that a kernel of each of the modules $1 reserves for itself.
SELECT module_id, MAX(scoped_bytes) AS scoped_bytes
FROM instructions
WHERE module_id IN (SELECT UNNEST(CAST($1 AS BIGINT[]))) AND scoped_bytes IS NOT NULL
GROUP BY module_id
