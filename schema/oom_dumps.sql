-- The dumps that an out-of-memory message may be of: the instructions $1 with the shapes $2 (null
-- where the message lacks the shape), the module's name $3, the run $4; $3 and $4 may be null.
WITH named AS (
    SELECT DISTINCT
        UNNEST(CAST($1 AS VARCHAR[])) AS instruction,
        UNNEST(CAST($2 AS VARCHAR[])) AS shape
),

found AS (
    SELECT
        instructions.module_id,
        COUNT(DISTINCT instructions.instruction) AS instructions
    FROM named
    INNER JOIN instructions
        ON
            named.instruction = instructions.instruction
            AND COALESCE(named.shape = instructions.shape, TRUE)
    GROUP BY instructions.module_id
)

SELECT
    dumps.dump_id,
    dumps.run_id,
    dumps.workload,
    dumps.module_name,
    dumps.module_id,
    dumps.oom,
    COALESCE(found.instructions, 0) AS instructions,
    module_memory.total_bytes,
    module_memory.temp_bytes
FROM dumps
INNER JOIN runs ON dumps.run_id = runs.run_id
LEFT JOIN found ON dumps.module_id = found.module_id
LEFT JOIN module_memory
    ON dumps.module_id = module_memory.module_id AND module_memory.memory_space = 0
WHERE
    dumps.module_id IS NOT NULL
    AND ($3 IS NULL OR dumps.module_name = $3)
    AND ($4 IS NULL OR dumps.run_id = $4)
    AND (found.instructions > 0 OR ($3 IS NOT NULL) OR dumps.oom)
ORDER BY runs.run_at DESC, runs.run_seq DESC, dumps.workload, dumps.module_number
