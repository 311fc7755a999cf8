-- What the compiler's passes did: see passes and buffer_passes in tables.py.
CREATE TABLE passes (
    module_id BIGINT NOT NULL,
    step INTEGER NOT NULL,
    pipeline TEXT,
    compiler_pass TEXT,
    instructions INTEGER NOT NULL,
    estimated_peak_bytes BIGINT NOT NULL,
    digest BIGINT NOT NULL,
    changes TEXT,
    text_bytes BIGINT NOT NULL
);
CREATE TABLE buffer_passes (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    event_number INTEGER NOT NULL,
    event ENUM(
        'program', 'appeared', 'fused', 'copied', 'rematerialised', 'asynchronous', 'layout',
        'type', 'replaced'
    ) NOT NULL,
    step INTEGER NOT NULL,
    instruction TEXT NOT NULL,
    before TEXT,
    is_certain BOOLEAN NOT NULL
);
