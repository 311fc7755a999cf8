-- The most memory that a kernel of each of the modules $1 takes, on chip or reserved in HBM.
SELECT module_id, MAX(scoped_bytes) AS scoped_bytes
FROM _dump_kernels
WHERE module_id IN (SELECT UNNEST(CAST($1 AS BIGINT[])))
GROUP BY module_id
