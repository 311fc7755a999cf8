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

-- Bytes that change little are stored as DOUBLE, which DuckDB packs: see _packed_bytes in tables.py.
ALTER TABLE occupancy RENAME TO _occupancy;
CREATE TABLE occupancy (
    module_id BIGINT NOT NULL,
    memory_space INTEGER NOT NULL,
    start_time INTEGER NOT NULL,
    live_bytes BIGINT GENERATED ALWAYS AS (CAST(_live_bytes AS BIGINT)) VIRTUAL,
    _live_bytes DOUBLE NOT NULL,
    occupied_bytes BIGINT GENERATED ALWAYS AS (CAST(_occupied_bytes AS BIGINT)) VIRTUAL,
    _occupied_bytes DOUBLE NOT NULL,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
);
INSERT INTO occupancy BY NAME
SELECT
    * EXCLUDE (live_bytes, occupied_bytes),
    CAST(live_bytes AS DOUBLE) AS _live_bytes,
    CAST(occupied_bytes AS DOUBLE) AS _occupied_bytes
FROM _occupancy
ORDER BY module_id, memory_space, start_time;
DROP TABLE _occupancy;
