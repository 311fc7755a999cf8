-- Ids are 53 bits of a hash, and were 63: what is left of an id is its upper bits, as in
-- xla/hashes.py. Key columns cannot have another type, so their values are set.
UPDATE dumps SET dump_id = dump_id >> 10;
ALTER TABLE dumps ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE dumps ALTER flags_id TYPE BIGINT USING flags_id >> 10;
ALTER TABLE dump_files ALTER dump_id TYPE BIGINT USING dump_id >> 10;
UPDATE modules SET module_id = module_id >> 10;
ALTER TABLE modules ALTER program_id TYPE BIGINT USING program_id >> 10;
ALTER TABLE modules ALTER skeleton_id TYPE BIGINT USING skeleton_id >> 10;
ALTER TABLE entry_shapes ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE memory_spaces ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE allocations ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE "values" ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE alias_sets ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE residuals ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE positions ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE uses ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE live_ranges ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE instructions ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE scopes ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE operands ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE computations ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE calls ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE stack_frames ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE compiler_flags ALTER flags_id TYPE BIGINT USING flags_id >> 10;
ALTER TABLE reported_peak ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE occupancy ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE module_memory ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE traits ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE peak_parts ALTER module_id TYPE BIGINT USING module_id >> 10;
ALTER TABLE history ALTER dump_id TYPE BIGINT USING dump_id >> 10;
ALTER TABLE history ALTER series_id TYPE BIGINT USING series_id >> 10;
ALTER TABLE history ALTER previous_dump_id TYPE BIGINT USING previous_dump_id >> 10;
ALTER TABLE history ALTER compared_dump_id TYPE BIGINT USING compared_dump_id >> 10;
ALTER TABLE causes ALTER dump_id TYPE BIGINT USING dump_id >> 10;
ALTER TABLE gone ALTER series_id TYPE BIGINT USING series_id >> 10;
ALTER TABLE gone ALTER last_dump_id TYPE BIGINT USING last_dump_id >> 10;
ALTER TABLE accepted_changes ALTER dump_id TYPE BIGINT USING dump_id >> 10;
ALTER TABLE oom_reports ALTER oom_id TYPE BIGINT USING oom_id >> 10;
ALTER TABLE oom_reports ALTER dump_id TYPE BIGINT USING dump_id >> 10;
ALTER TABLE oom_buffers ALTER oom_id TYPE BIGINT USING oom_id >> 10;

-- Times are UTC without a zone.
ALTER TABLE runs ALTER run_at TYPE TIMESTAMP USING run_at AT TIME ZONE 'UTC';
ALTER TABLE runs ALTER ingested_at TYPE TIMESTAMP USING ingested_at AT TIME ZONE 'UTC';
ALTER TABLE runs ALTER claimed_at TYPE TIMESTAMP USING claimed_at AT TIME ZONE 'UTC';
ALTER TABLE runs ALTER compiled_at TYPE TIMESTAMP USING compiled_at AT TIME ZONE 'UTC';
ALTER TABLE run_parts ALTER entered_at TYPE TIMESTAMP USING entered_at AT TIME ZONE 'UTC';
ALTER TABLE journal ALTER entered_at TYPE TIMESTAMP USING entered_at AT TIME ZONE 'UTC';
ALTER TABLE accepted_changes ALTER accepted_at TYPE TIMESTAMP USING accepted_at AT TIME ZONE 'UTC';

-- Closed lists of words; what an older memhouse said in another word is null.
ALTER TABLE journal ALTER action TYPE ENUM(
    'ingest', 'read again', 'replace', 'prune', 'label', 'accept', 'compact', 'upgrade',
    'repair', 'import', 'sql'
);
ALTER TABLE dumps ALTER status TYPE ENUM('ok', 'partial', 'failed');
ALTER TABLE dump_files ALTER status TYPE ENUM('ok', 'partial', 'failed', 'contradicts', 'missing');
ALTER TABLE modules ALTER origin TYPE ENUM(
    'dumped', 'derived', 'estimated'
) USING TRY_CAST(origin AS ENUM(
    'dumped', 'derived', 'estimated'
));
ALTER TABLE "values" ALTER origin_rule TYPE ENUM(
    'argument', 'own', 'moved', 'loop', 'fused', 'becomes', 'read', 'operand', 'weak'
) USING TRY_CAST(origin_rule AS ENUM(
    'argument', 'own', 'moved', 'loop', 'fused', 'becomes', 'read', 'operand', 'weak'
));
ALTER TABLE "values" ALTER "pass" TYPE ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
) USING TRY_CAST("pass" AS ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
));
ALTER TABLE "values" ALTER role TYPE ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
) USING TRY_CAST(role AS ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
));
ALTER TABLE instructions ALTER "pass" TYPE ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
) USING TRY_CAST("pass" AS ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
));
ALTER TABLE peak_parts ALTER category TYPE ENUM('argument', 'output', 'constant', 'other', 'temp');
ALTER TABLE peak_parts ALTER role TYPE ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
) USING TRY_CAST(role AS ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
));
ALTER TABLE peak_parts ALTER "pass" TYPE ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
) USING TRY_CAST("pass" AS ENUM(
    'argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'
));
ALTER TABLE history ALTER matched_by TYPE ENUM(
    'only', 'program', 'signature', 'skeleton', 'order', 'workload renamed',
    'module renamed', 'renamed'
) USING TRY_CAST(matched_by AS ENUM(
    'only', 'program', 'signature', 'skeleton', 'order', 'workload renamed',
    'module renamed', 'renamed'
));
ALTER TABLE causes ALTER role TYPE ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
) USING TRY_CAST(role AS ENUM(
    'weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation',
    'gradient', 'output', 'constant', 'workspace'
));
ALTER TABLE accepted_changes ALTER metric TYPE ENUM(
    'peak_bytes', 'total_bytes', 'argument_bytes', 'output_bytes', 'alias_bytes',
    'constant_bytes', 'thread_local_bytes', 'temp_bytes', 'fragmentation_bytes',
    'padding_bytes', 'live_bound_bytes', 'packing_bytes'
);
ALTER TABLE oom_reports ALTER kind TYPE ENUM('program', 'scoped', 'allocation', 'runtime');

-- Memory spaces by name: see space_of in xla/parts.py.
ALTER TABLE memory_spaces ADD COLUMN space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other');
ALTER TABLE allocations ADD COLUMN space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other');
ALTER TABLE "values" ADD COLUMN space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other');
ALTER TABLE occupancy ADD COLUMN space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other');
ALTER TABLE module_memory ADD COLUMN space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other');
UPDATE memory_spaces
SET space = CASE
    WHEN lower(space_name) IN ('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
        THEN lower(space_name)
    WHEN memory_space = 0 AND platform = 'cpu' THEN 'host'
    WHEN memory_space = 0 THEN 'hbm'
    WHEN memory_space = 5 AND platform = 'gpu' THEN 'host'
    WHEN memory_space = 1 AND platform = 'tpu' THEN 'vmem'
    WHEN memory_space = 2 AND platform = 'tpu' THEN 'smem'
    ELSE 'other'
END
FROM (SELECT module_id AS id, min(platform) AS platform FROM dumps GROUP BY module_id)
WHERE module_id = id;
UPDATE allocations
SET space = memory_spaces.space
FROM memory_spaces
WHERE allocations.module_id = memory_spaces.module_id
    AND allocations.memory_space = memory_spaces.memory_space;
UPDATE "values"
SET space = memory_spaces.space
FROM memory_spaces
WHERE "values".module_id = memory_spaces.module_id
    AND "values".memory_space = memory_spaces.memory_space;
UPDATE occupancy
SET space = memory_spaces.space
FROM memory_spaces
WHERE occupancy.module_id = memory_spaces.module_id
    AND occupancy.memory_space = memory_spaces.memory_space;
UPDATE module_memory
SET space = memory_spaces.space
FROM memory_spaces
WHERE module_memory.module_id = memory_spaces.module_id
    AND module_memory.memory_space = memory_spaces.memory_space;

-- What Pallas kernels keep on chip: see kernel_parts and instructions in tables.py.
ALTER TABLE instructions ADD COLUMN scoped_space INTEGER;
ALTER TABLE instructions ADD COLUMN used_scoped_bytes BIGINT;
CREATE TABLE kernel_parts (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    kind ENUM('input', 'output', 'scratch', 'allocation', 'prefetched', 'semaphore') NOT NULL,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other'),
    shape TEXT NOT NULL,
    buffers INTEGER NOT NULL,
    size_bytes BIGINT
);
-- Work: null until the dump is ingested again.
ALTER TABLE modules ADD COLUMN flops BIGINT;
ALTER TABLE modules ADD COLUMN unknown_loops INTEGER;
ALTER TABLE instructions ADD COLUMN flops BIGINT;
ALTER TABLE computations ADD COLUMN executions BIGINT;
ALTER TABLE calls ADD COLUMN trip_count BIGINT;
