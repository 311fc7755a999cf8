-- The journal, runs in parts, and one clock: see `journal`, `run_parts` and `runs` in tables.py.
-- A run keeps its place, but for a time that nobody can have meant: such a run stands where it
-- entered.
ALTER TABLE runs ADD COLUMN claimed_at TIMESTAMP WITH TIME ZONE;
ALTER TABLE runs ADD COLUMN compiled_at TIMESTAMP WITH TIME ZONE;
UPDATE runs SET compiled_at = run_at;
UPDATE runs SET run_at = ingested_at
WHERE run_at < TIMESTAMPTZ '2015-01-01 00:00:00+00' OR run_at > ingested_at + INTERVAL 1 DAY;
ALTER TABLE dumps ADD COLUMN host TEXT;
ALTER TABLE modules ADD COLUMN reader_version INTEGER;
UPDATE modules SET reader_version = 0;
ALTER TABLE schema_version ADD COLUMN layout TEXT;
CREATE TABLE run_parts (
    run_id TEXT NOT NULL,
    host TEXT NOT NULL,
    source TEXT NOT NULL,
    entered_at TIMESTAMP WITH TIME ZONE NOT NULL
);
INSERT INTO run_parts SELECT run_id, '' AS host, source, ingested_at FROM runs;
CREATE TABLE journal (
    entry INTEGER NOT NULL,
    entered_at TIMESTAMP WITH TIME ZONE NOT NULL,
    action TEXT NOT NULL,
    run_id TEXT,
    host TEXT,
    detail TEXT NOT NULL,
    tool_version TEXT NOT NULL,
    reader_version INTEGER NOT NULL,
    by_whom TEXT NOT NULL
);
INSERT INTO journal
SELECT
    ROW_NUMBER() OVER (ORDER BY run_seq) AS entry,
    ingested_at AS entered_at,
    'ingest' AS action,
    run_id,
    NULL AS host,
    'before the journal was kept' AS detail,
    tool_version,
    0 AS reader_version,
    '' AS by_whom
FROM runs;
