-- Every dump's module, files and run are stored, and so is the module of every row.
SELECT dumps.module_id, 'the module of run ' || dumps.run_id || ' is not there' AS breach
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
WHERE dumps.module_id IS NOT NULL AND modules.module_id IS NULL
UNION ALL
SELECT module_id, 'the files of run ' || run_id || ' are not there'
FROM dumps
WHERE files_id IS NOT NULL AND files_id NOT IN (SELECT files_id FROM file_sets)
UNION ALL
SELECT dumps.module_id, 'run ' || dumps.run_id || ' is not there'
FROM dumps
LEFT JOIN runs ON runs.run_id = dumps.run_id
WHERE runs.run_id IS NULL
UNION ALL
SELECT DISTINCT owned.module_id, 'rows without their module'
FROM (
    SELECT module_id FROM allocations
    UNION ALL SELECT module_id FROM "values"
    UNION ALL SELECT module_id FROM positions
    UNION ALL SELECT module_id FROM uses
    UNION ALL SELECT module_id FROM instructions
    UNION ALL SELECT module_id FROM occupancy
) AS owned
LEFT JOIN modules ON modules.module_id = owned.module_id
WHERE modules.module_id IS NULL
