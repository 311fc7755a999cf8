-- What each dumped module needs in each memory space: `peaks` without names of instructions, which
-- are quick to look up only for a few rows.
--
-- A row per dump and memory space.
CREATE OR REPLACE VIEW internal.peaks AS
SELECT
    dumps.run_id,
    runs.run_at,
    dumps.workload,
    dumps.module_name,
    dumps.occurrence,
    dumps.platform,
    entry_programs.is_entry,
    module_memory.memory_space,
    module_memory.space,
    module_memory.space_name,
    module_memory.peak_bytes,
    module_memory.peak_upper_bytes,
    module_memory.total_bytes,
    module_memory.reserved_bytes,
    CASE
        WHEN module_memory.memory_space = 0 THEN dumps.device_memory_bytes
        WHEN module_memory.space = 'vmem' THEN devices.vmem_bytes
    END AS capacity_bytes,
    CASE
        WHEN module_memory.memory_space = 0
            THEN dumps.device_memory_bytes - module_memory.reserved_bytes
    END AS headroom_bytes,
    module_memory.argument_bytes,
    module_memory.output_bytes,
    module_memory.alias_bytes,
    module_memory.constant_bytes,
    module_memory.thread_local_bytes,
    module_memory.temp_bytes,
    module_memory.fragmentation_bytes,
    module_memory.fragmentation,
    module_memory.padding_bytes,
    module_memory.live_bound_bytes,
    module_memory.order_bytes,
    module_memory.order_bound_bytes,
    modules.origin,
    module_memory.peak_time,
    modules.schedule_length,
    module_memory.peak_instruction_id,
    dumps.status,
    dumps.oom,
    dumps.dump_id,
    dumps.module_id
FROM dumps
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN modules ON modules.module_id = dumps.module_id
INNER JOIN module_memory ON module_memory.module_id = dumps.module_id
INNER JOIN internal.entry_programs ON entry_programs.dump_id = dumps.dump_id
LEFT JOIN internal.devices ON devices.device_kind = dumps.device_kind;

CREATE OR REPLACE VIEW peaks_by_space AS
SELECT
    dumped.*,
    peaks.* EXCLUDE (
        run_id,
        run_at,
        workload,
        module_name,
        platform,
        is_entry,
        peak_instruction_id,
        dump_id,
        module_id
    ),
    instructions.instruction AS peak_instruction
FROM internal.dumped
INNER JOIN internal.peaks ON peaks.dump_id = dumped.dump_id
LEFT JOIN instructions
    ON instructions.module_id = peaks.module_id
        AND instructions.instruction_id = peaks.peak_instruction_id;
COMMENT ON VIEW peaks_by_space IS
'What each dumped module needs in each memory space, and when it needs most.

A row per dump and memory space. Start here: the largest peak_bytes in memory space 0 must fit
into HBM.

Key: dump_id, memory_space.';
COMMENT ON COLUMN peaks_by_space.space_name IS 'the space''s name, null if the dump names none';
COMMENT ON COLUMN peaks_by_space.peak_upper_bytes IS
'of HLO text without a schedule: the peak in the worse of two orders, peak_bytes in the better one;
null of scheduled programs';
COMMENT ON COLUMN peaks_by_space.total_bytes IS 'sum of the allocations';
COMMENT ON COLUMN peaks_by_space.reserved_bytes IS
'total_bytes - thread_local_bytes: what must fit, and what `memhouse check` judges';
COMMENT ON COLUMN peaks_by_space.capacity_bytes IS
'what a program may use of the space: of the main memory, and of a TPU''s VMEM; null where it is
not known; exact, while a message in `oom_reports` may round it';
COMMENT ON COLUMN peaks_by_space.headroom_bytes IS
'the device''s memory minus reserved_bytes; null for other memory spaces, and where the device is
not known';
COMMENT ON COLUMN peaks_by_space.argument_bytes IS 'allocations of parameters';
COMMENT ON COLUMN peaks_by_space.output_bytes IS 'allocations that may live out';
COMMENT ON COLUMN peaks_by_space.alias_bytes IS 'allocations that are both';
COMMENT ON COLUMN peaks_by_space.constant_bytes IS 'allocations of constants';
COMMENT ON COLUMN peaks_by_space.thread_local_bytes IS 'thread-local allocations';
COMMENT ON COLUMN peaks_by_space.temp_bytes IS 'the preallocated temp';
COMMENT ON COLUMN peaks_by_space.fragmentation_bytes IS
'reserved_bytes - peak_bytes: what packing wastes';
COMMENT ON COLUMN peaks_by_space.fragmentation IS 'fragmentation_bytes over temp_bytes';
COMMENT ON COLUMN peaks_by_space.padding_bytes IS 'size - logical size of what is live at the peak';
COMMENT ON COLUMN peaks_by_space.schedule_length IS 'instructions in the schedule';
COMMENT ON COLUMN peaks_by_space.peak_instruction IS 'the instruction at peak_time';

CREATE OR REPLACE VIEW peaks AS
SELECT * EXCLUDE (memory_space, space_name)
FROM peaks_by_space
WHERE memory_space = 0;
COMMENT ON VIEW peaks IS
'What each program needs of the main memory, and when it needs most.

A row per dump, of HBM or of the host''s memory. Start here: the largest peak_bytes must fit. Other
memory spaces are in `peaks_by_space`.

Key: dump_id.';
COMMENT ON COLUMN peaks.peak_upper_bytes IS
'of HLO text without a schedule: the peak in the worse of two orders, peak_bytes in the better one;
null of scheduled programs';
COMMENT ON COLUMN peaks.total_bytes IS 'sum of the allocations';
COMMENT ON COLUMN peaks.reserved_bytes IS
'total_bytes - thread_local_bytes: what must fit, and what `memhouse check` judges';
COMMENT ON COLUMN peaks.capacity_bytes IS
'what a program may use of the space: of the main memory, and of a TPU''s VMEM; null where it is
not known; exact, while a message in `oom_reports` may round it';
COMMENT ON COLUMN peaks.headroom_bytes IS
'the device''s memory minus reserved_bytes; null for other memory spaces, and where the device is
not known';
COMMENT ON COLUMN peaks.argument_bytes IS 'allocations of parameters';
COMMENT ON COLUMN peaks.output_bytes IS 'allocations that may live out';
COMMENT ON COLUMN peaks.alias_bytes IS 'allocations that are both';
COMMENT ON COLUMN peaks.constant_bytes IS 'allocations of constants';
COMMENT ON COLUMN peaks.thread_local_bytes IS 'thread-local allocations';
COMMENT ON COLUMN peaks.temp_bytes IS 'the preallocated temp';
COMMENT ON COLUMN peaks.fragmentation_bytes IS 'reserved_bytes - peak_bytes: what packing wastes';
COMMENT ON COLUMN peaks.fragmentation IS 'fragmentation_bytes over temp_bytes';
COMMENT ON COLUMN peaks.padding_bytes IS 'size - logical size of what is live at the peak';
COMMENT ON COLUMN peaks.schedule_length IS 'instructions in the schedule';
COMMENT ON COLUMN peaks.peak_instruction IS 'the instruction at peak_time';

CREATE OR REPLACE VIEW internal.metrics AS
SELECT
    module_id,
    memory_space,
    space,
    metric,
    value
FROM module_memory
UNPIVOT INCLUDE NULLS (
    value FOR metric IN (
        peak_bytes,
        total_bytes,
        reserved_bytes,
        argument_bytes,
        output_bytes,
        alias_bytes,
        constant_bytes,
        thread_local_bytes,
        temp_bytes,
        fragmentation_bytes,
        padding_bytes,
        live_bound_bytes,
        order_bytes,
        order_bound_bytes,
    )
)
UNION ALL
SELECT
    module_memory.module_id,
    module_memory.memory_space,
    module_memory.space,
    'flops',
    modules.flops
FROM module_memory
INNER JOIN modules ON modules.module_id = module_memory.module_id
WHERE module_memory.memory_space = 0;

CREATE OR REPLACE VIEW metrics AS
SELECT
    dumped.*,
    metrics.space,
    metrics.metric,
    metric_names.unit,
    metrics.value
FROM internal.dumped
INNER JOIN internal.metrics ON metrics.module_id = dumped.module_id
INNER JOIN internal.metric_names ON metric_names.metric = metrics.metric
WHERE metrics.memory_space = 0;
COMMENT ON VIEW metrics IS
'What each program needs of the main memory, metric by metric.

A row per dump and metric. `peaks` has the same values, a column a metric; flops is the work of one
execution, see `modules`.

Key: dump_id, metric.';
