-- What the programs of the run and workload of dump $1 take on one device, in memory space $2:
-- arguments once, and the most that any of them needs beyond its arguments.
-- Arguments of one name, type and dimensions may be the same array: then shared_bytes, else
-- apart_bytes.
WITH compiled AS (
    SELECT DISTINCT
        memory.module_id,
        memory.peak_bytes
    FROM dumps AS mine
    INNER JOIN dumps AS theirs
        ON theirs.run_id = mine.run_id
            AND theirs.workload = mine.workload
            AND theirs.platform IS NOT DISTINCT FROM mine.platform
    INNER JOIN module_memory AS memory
        ON memory.module_id = theirs.module_id AND memory.memory_space = $2
    WHERE mine.dump_id = $1
),

-- JAX compiles small helpers too, which say nothing.
beside AS (
    SELECT module_id
    FROM compiled
    WHERE peak_bytes >= 0.01 * (SELECT MAX(all_of_them.peak_bytes) FROM compiled AS all_of_them)
),

arguments AS (
    SELECT
        arrays.module_id,
        COALESCE(arrays.op_name, CAST(arrays.module_id AS VARCHAR)) AS name,
        arrays.element_type,
        arrays.dimensions,
        arrays.padded_bytes,
        ROW_NUMBER() OVER (
            PARTITION BY
                arrays.module_id, arrays.op_name, arrays.element_type, arrays.dimensions
            ORDER BY arrays.place
        ) AS nth
    FROM _entry_arrays AS arrays
    INNER JOIN beside ON beside.module_id = arrays.module_id
    WHERE NOT arrays.is_output AND arrays.memory_space = $2
),

kept AS (
    SELECT
        SUM(most_bytes) AS shared_bytes,
        SUM(all_bytes) AS apart_bytes
    FROM (
        SELECT
            MAX(padded_bytes) AS most_bytes,
            SUM(padded_bytes) AS all_bytes
        FROM arguments
        GROUP BY name, element_type, dimensions, nth
    )
),

programs AS (
    SELECT
        memory.module_id,
        memory.peak_bytes,
        memory.peak_bytes - COALESCE(own.argument_bytes, 0) AS other_bytes
    FROM module_memory AS memory
    INNER JOIN beside ON beside.module_id = memory.module_id
    LEFT JOIN (
        SELECT
            module_id,
            SUM(padded_bytes) AS argument_bytes
        FROM arguments
        GROUP BY module_id
    ) AS own ON own.module_id = memory.module_id
    WHERE memory.memory_space = $2
)

SELECT
    CAST(COUNT(*) AS BIGINT) AS programs,
    CAST(ANY_VALUE(kept.shared_bytes) + MAX(programs.other_bytes) AS BIGINT) AS shared_bytes,
    CAST(ANY_VALUE(kept.apart_bytes) + MAX(programs.other_bytes) AS BIGINT) AS apart_bytes,
    MAX(programs.peak_bytes) AS largest_bytes
FROM programs
CROSS JOIN kept
