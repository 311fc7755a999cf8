-- Which dumps the causes of the history are of: what is held against, and the dump, where another
-- program, name, health, or reader of it is to be told.
SELECT a.dump_id AS a_dump_id, b.dump_id AS b_dump_id
FROM history
INNER JOIN dumps AS b ON b.dump_id = history.dump_id
INNER JOIN dumps AS a ON a.dump_id = COALESCE(history.compared_dump_id, history.previous_dump_id)
LEFT JOIN modules AS a_module ON a_module.module_id = a.module_id
LEFT JOIN modules AS b_module ON b_module.module_id = b.module_id
WHERE
    (
        a.module_id IS DISTINCT FROM b.module_id
        AND COALESCE(a_module.program_id <> b_module.program_id, TRUE)
    )
    OR a_module.reader_version IS DISTINCT FROM b_module.reader_version
    OR (a.workload, a.module_name) <> (b.workload, b.module_name)
    OR a.platform IS DISTINCT FROM b.platform
    OR (a.status, a.oom) <> (b.status, b.oom)
