-- What another order of the instructions would need, and what runs before what though nothing is
-- read: null or without rows until the dump is ingested again. See module_memory in tables.py.
CREATE TABLE control_dependencies (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    predecessor_instruction_id INTEGER NOT NULL
);
ALTER TABLE module_memory ADD COLUMN order_bytes BIGINT;
ALTER TABLE module_memory ADD COLUMN order_bound_bytes BIGINT;
ALTER TABLE accepted_changes ALTER metric TYPE ENUM(
    'peak_bytes', 'total_bytes', 'argument_bytes', 'output_bytes', 'alias_bytes',
    'constant_bytes', 'thread_local_bytes', 'temp_bytes', 'fragmentation_bytes',
    'padding_bytes', 'live_bound_bytes', 'packing_bytes', 'order_bytes', 'order_bound_bytes'
);
-- A part without a host has none, as dumps have it.
ALTER TABLE run_parts ALTER host DROP NOT NULL;
ALTER TABLE run_parts ALTER host TYPE TEXT USING nullif(host, '');
