-- What `memhouse diff` tells of dump $1: the dump with its signature and schedule length.
SELECT dumps.*, modules.entry_signature, modules.schedule_length
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
WHERE dumps.dump_id = $1
