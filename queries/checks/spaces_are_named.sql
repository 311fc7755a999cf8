-- A usage report names exactly the memory spaces that have allocations.
SELECT
    module_id,
    'memory space ' || memory_space || CASE
        WHEN space_name IS NULL THEN ' has allocations and no name'
        ELSE ' has a name and no allocations'
    END AS breach
FROM module_memory
WHERE (space_name IS NULL OR total_bytes IS NULL)
    AND module_id IN (SELECT module_id FROM module_memory WHERE space_name IS NOT NULL)
    AND module_id IN (SELECT module_id FROM allocations)
