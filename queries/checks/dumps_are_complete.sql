-- Every file of every dump was read whole, and no file contradicts another.
SELECT
    dumps.module_id,
    'run ' || dumps.run_id || ', ' || dump_files.path
    || COALESCE(':' || dump_files.line, '') || ': ' || dump_files.message AS breach
FROM dump_files
INNER JOIN dumps ON dumps.dump_id = dump_files.dump_id
WHERE dump_files.status <> 'ok'
