-- The line of a library beside that of the user's code: see source_line in tables.py.
ALTER TABLE instructions ADD COLUMN source_frame_id INTEGER;
ALTER TABLE instructions ADD COLUMN library_file TEXT;
ALTER TABLE instructions ADD COLUMN library_line INTEGER;
-- The modules of a scope, and the path that repeated layers share: see scopes in tables.py.
ALTER TABLE scopes ADD COLUMN module_path TEXT;
ALTER TABLE scopes ADD COLUMN fold TEXT;
-- The opcodes whose rule is assumed, and estimates without a schedule, whose peak has another end
-- and which are compared with each other only: see modules and module_memory in tables.py.
ALTER TABLE modules ADD COLUMN grade INTEGER;
ALTER TABLE modules ADD COLUMN assumed TEXT;
ALTER TABLE module_memory ADD COLUMN peak_high_bytes BIGINT;
UPDATE modules SET grade = CAST(origin = 'estimated' AS INTEGER) WHERE origin IS NOT NULL;

-- What the peak consists of, and the ledger of its change: see tables.py.
CREATE TABLE peak_parts (
    module_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    category TEXT NOT NULL,
    role TEXT,
    pass TEXT,
    owner TEXT,
    operation TEXT,
    shape TEXT,
    source TEXT,
    buffers INTEGER NOT NULL,
    counted_bytes BIGINT NOT NULL
);
CREATE TABLE causes (
    dump_id BIGINT NOT NULL,
    rank INTEGER NOT NULL,
    kind TEXT NOT NULL,
    term TEXT NOT NULL,
    change_bytes BIGINT,
    source TEXT,
    role TEXT
);
