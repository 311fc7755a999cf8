-- What `memhouse diff` says of dump $1 before it compares figures.
SELECT dumps.*, modules.entry_signature, modules.schedule_length
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
WHERE dumps.dump_id = $1
