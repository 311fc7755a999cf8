-- A usage report names exactly the memory spaces that have allocations.
SELECT
    memory_spaces.module_id,
    'memory space ' || memory_spaces.memory_space || CASE
        WHEN memory_spaces.space_name IS NULL THEN ' has allocations and no name'
        ELSE ' has a name and no allocations'
    END AS breach
FROM memory_spaces
LEFT JOIN (
    SELECT DISTINCT module_id, memory_space FROM allocations
) AS filled
    ON filled.module_id = memory_spaces.module_id
        AND filled.memory_space = memory_spaces.memory_space
WHERE memory_spaces.module_id IN (SELECT module_id FROM allocations)
    AND memory_spaces.module_id IN (
        SELECT module_id FROM memory_spaces WHERE space_name IS NOT NULL
    )
    AND (memory_spaces.space_name IS NULL OR filled.memory_space IS NULL)
