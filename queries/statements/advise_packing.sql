-- The packing of module $1 in memory space $2, and the dump since which its series has half as much
-- or more without a break; dump $3 is the module's.
WITH chain AS (
    SELECT
        earlier.chain_index,
        dumps.run_id,
        dumps.compiler,
        module_memory.packing_bytes,
        MAX(
            CASE
                WHEN module_memory.packing_bytes * 2 < own.packing_bytes
                    THEN earlier.chain_index
            END
        ) OVER () AS last_without
    FROM history AS newest
    INNER JOIN module_memory AS own
        ON own.module_id = $1 AND own.memory_space = $2
    INNER JOIN history AS earlier
        ON earlier.series_id = newest.series_id AND earlier.chain_index <= newest.chain_index
    INNER JOIN dumps ON dumps.dump_id = earlier.dump_id
    INNER JOIN module_memory
        ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = $2
    WHERE newest.dump_id = $3
)

SELECT
    module_memory.packing_bytes,
    module_memory.temp_bytes,
    module_memory.live_bound_bytes,
    since.run_id AS since_run_id,
    since.compiler AS since_compiler
FROM module_memory
LEFT JOIN (
    SELECT
        run_id,
        compiler
    FROM chain
    WHERE last_without IS NOT NULL AND chain_index > last_without
    ORDER BY chain_index
    LIMIT 1
) AS since ON TRUE
WHERE module_memory.module_id = $1 AND module_memory.memory_space = $2
