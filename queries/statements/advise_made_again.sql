-- The largest value of module $1 in memory space $2 that is computed again from time $3 to $4.
SELECT COALESCE(MAX(size_bytes), 0) AS size_bytes
FROM "values"
INNER JOIN live_ranges USING (module_id, value_id)
WHERE
    module_id = $1
    AND memory_space = $2
    AND start_time >= $3
    AND end_time <= $4
    AND "pass" = 'rematerialised'
