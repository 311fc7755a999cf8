-- Each set of files is stored once, whatever number of dumps has it: see file_sets in tables.py.
-- A lake is upgraded by these statements too.
CREATE TABLE file_sets (
    files_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BIGINT,
    sha256 TEXT,
    status ENUM('ok', 'partial', 'failed', 'contradicts', 'missing') NOT NULL,
    line INTEGER,
    message TEXT
);
ALTER TABLE dumps ADD COLUMN files_id BIGINT;
CREATE TEMPORARY TABLE _named AS
SELECT
    dump_files.* EXCLUDE (path),
    CASE
        WHEN dumps.workload = '.' THEN path
        WHEN starts_with(path, dumps.workload || '/') THEN substr(path, length(dumps.workload) + 2)
        ELSE '/' || path
    END AS name
FROM dump_files
INNER JOIN dumps ON dumps.dump_id = dump_files.dump_id;
-- As files_id in ids.py.
UPDATE dumps
SET files_id = sets.files_id
FROM (
    SELECT
        dump_id AS id,
        ('0x' || left(sha256(string_agg(
            concat_ws(
                chr(10), name, kind, coalesce(CAST(bytes AS TEXT), ''), coalesce(sha256, ''), status,
                coalesce(CAST(line AS TEXT), ''), coalesce(message, ''), ''
            ),
            '' ORDER BY name
        )), 16))::UBIGINT >> 11 AS files_id
    FROM _named
    GROUP BY dump_id
) AS sets
WHERE dump_id = sets.id;
INSERT INTO file_sets BY NAME
SELECT files_id, _named.* EXCLUDE (dump_id)
FROM _named
INNER JOIN (SELECT files_id, min(dump_id) AS dump_id FROM dumps GROUP BY files_id) USING (dump_id)
ORDER BY files_id;
DROP TABLE _named;
DROP TABLE dump_files;
