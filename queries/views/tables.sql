-- The files of each dump, and whether memhouse could read them.
--
-- A row per dump and file. Dumps of many hosts and nights share a set of files, which `file_sets`
-- has once.
--
-- Key: dump_id, path.
--
-- path: the file, relative to the ingested path
-- kind: what the file holds, for example live-range
-- bytes: the uncompressed size; null if the file could not be read
-- sha256: SHA-256 of the uncompressed file, in hex; of a HloProto, one that equal messages share
-- status: ok; failed: nothing was read; partial: a part was read; contradicts: contradicts another
--     file; missing: the dump lacks the file
-- line: the line that the message is about, from 1
-- message: what is wrong, and what to do; of a file that is ok: what was not understood or cannot
--     be known
CREATE VIEW dump_files AS
SELECT
    dumps.dump_id,
    CASE
        WHEN STARTS_WITH(file_sets.name, '/') THEN SUBSTR(file_sets.name, 2)
        WHEN dumps.workload = '.' THEN file_sets.name
        ELSE dumps.workload || '/' || file_sets.name
    END AS path,
    file_sets.kind,
    file_sets.bytes,
    file_sets.sha256,
    file_sets.status,
    file_sets.line,
    file_sets.message
FROM dumps
INNER JOIN file_sets ON file_sets.files_id = dumps.files_id;
