-- A usage report names all memory spaces that have allocations.
SELECT module_id, 'memory space ' || memory_space || ' has allocations and no name' AS breach
FROM module_memory
WHERE space_name IS NULL
    AND module_id IN (SELECT module_id FROM module_memory WHERE space_name IS NOT NULL)
