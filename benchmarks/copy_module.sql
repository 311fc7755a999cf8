-- Every copied module gets its rows of one table: those of its real module, with all
-- bytes times its factor. In the order of the nights, as ingest leaves them.
INSERT INTO "{table}" BY NAME
SELECT owned.* {left_out} REPLACE (copied_module.module_id AS module_id {scaled})
FROM real."{table}" AS owned
INNER JOIN copied_module ON copied_module.real_module_id = owned.module_id
ORDER BY copied_module.first_night, copied_module.module_id, owned.rowid
