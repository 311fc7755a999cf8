-- Which dumps are of entry programs: those that a workload is run for. The others are helpers,
-- such as eager operations and initialisers.
--
-- A row per dump. An entry program's peak in memory space 0 is at least 5 % of the largest peak of
-- its workload in the run, and at least half of it if the program has less than a tenth of the
-- instructions (an eager operation on a large array has two or three). A program whose name is in
-- the run's label `entry` is one too; several names have commas between them. A program that ran
-- out of memory, or whose peak is not known, is no helper.
CREATE VIEW _entry_programs AS
WITH largest AS (
    SELECT
        dumps.run_id,
        dumps.workload,
        MAX(module_memory.peak_bytes) AS peak_bytes,
        MAX_BY(modules.schedule_length, module_memory.peak_bytes) AS schedule_length
    FROM dumps
    INNER JOIN modules ON modules.module_id = dumps.module_id
    INNER JOIN module_memory
        ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
    GROUP BY dumps.run_id, dumps.workload
)

SELECT
    dumps.dump_id,
    dumps.oom
    OR COALESCE(
        module_memory.peak_bytes
        >= largest.peak_bytes
        * CASE
            WHEN modules.schedule_length < 0.1 * largest.schedule_length THEN 0.5 ELSE 0.05
        END,
        TRUE
    )
    OR COALESCE(
        CONTAINS(',' || run_labels.value || ',', ',' || dumps.module_name || ','), FALSE
    ) AS is_entry
FROM dumps
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
LEFT JOIN largest ON largest.run_id = dumps.run_id AND largest.workload = dumps.workload
LEFT JOIN run_labels ON run_labels.run_id = dumps.run_id AND run_labels.key = 'entry';

-- What each dumped module needs in each memory space: `peaks` without names of instructions, which
-- are quick to look up only for a few rows.
--
-- A row per dump and memory space.
CREATE VIEW _peaks AS
SELECT
    dumps.run_id,
    runs.run_at,
    dumps.workload,
    dumps.module_name,
    dumps.occurrence,
    dumps.platform,
    _entry_programs.is_entry,
    module_memory.memory_space,
    module_memory.space,
    memory_spaces.space_name,
    module_memory.peak_bytes,
    module_memory.peak_high_bytes,
    module_memory.total_bytes,
    CASE
        WHEN module_memory.memory_space = 0 THEN dumps.device_memory_bytes
        WHEN module_memory.space = 'vmem' THEN _devices.vmem_bytes
    END AS capacity_bytes,
    CASE
        WHEN module_memory.memory_space = 0
            THEN dumps.device_memory_bytes
                - (
                    module_memory.total_bytes - COALESCE(module_memory.thread_local_bytes, 0)
                )
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
    module_memory.packing_bytes,
    module_memory.__metric__,
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
INNER JOIN _entry_programs ON _entry_programs.dump_id = dumps.dump_id
LEFT JOIN _devices ON _devices.device_kind = dumps.device_kind
LEFT JOIN memory_spaces
    ON memory_spaces.module_id = module_memory.module_id
        AND memory_spaces.memory_space = module_memory.memory_space;

-- What each dumped module needs in each memory space, and when it needs most.
--
-- A row per dump and memory space. Start here: the largest peak_bytes in memory space 0 must
-- fit into HBM.
--
-- Key: dump_id, memory_space.
--
-- space_name: the space's name, null if the dump names none
-- peak_high_bytes: of HLO text without a schedule: the peak in the worse of two orders, peak_bytes
--     in the better one; null of scheduled programs
-- total_bytes: sum of the allocations
-- capacity_bytes: what a program may use of the space: of the main memory, and of a TPU's VMEM;
--     null where it is not known; exact, while a message in `oom_reports` may round it
-- headroom_bytes: the device's memory minus what is reserved for the program, total_bytes -
--     thread_local_bytes; null for other memory spaces, and where the device is not known
-- argument_bytes: allocations of parameters
-- output_bytes: allocations that may live out
-- alias_bytes: allocations that are both
-- constant_bytes: allocations of constants
-- thread_local_bytes: thread-local allocations
-- temp_bytes: the preallocated temp
-- fragmentation_bytes: total_bytes - thread_local_bytes - peak_bytes, what packing wastes, see
--     packing_bytes
-- fragmentation: fragmentation_bytes over temp_bytes
-- padding_bytes: size - logical size of what is live at the peak
-- schedule_length: instructions in the schedule
-- peak_instruction: the instruction at peak_time
CREATE VIEW peaks AS
SELECT
    _peaks.run_id,
    _peaks.run_at,
    _peaks.workload,
    _peaks.module_name,
    _peaks.occurrence,
    _peaks.platform,
    _peaks.is_entry,
    _peaks.memory_space,
    _peaks.space,
    _peaks.space_name,
    _peaks.peak_bytes,
    _peaks.peak_high_bytes,
    _peaks.total_bytes,
    _peaks.capacity_bytes,
    _peaks.headroom_bytes,
    _peaks.argument_bytes,
    _peaks.output_bytes,
    _peaks.alias_bytes,
    _peaks.constant_bytes,
    _peaks.thread_local_bytes,
    _peaks.temp_bytes,
    _peaks.fragmentation_bytes,
    _peaks.fragmentation,
    _peaks.padding_bytes,
    _peaks.live_bound_bytes,
    _peaks.packing_bytes,
    _peaks.__metric__,
    _peaks.origin,
    _peaks.peak_time,
    _peaks.schedule_length,
    instructions.instruction AS peak_instruction,
    _peaks.status,
    _peaks.oom,
    _peaks.dump_id,
    _peaks.module_id
FROM _peaks
LEFT JOIN instructions
    ON instructions.module_id = _peaks.module_id
        AND instructions.instruction_id = _peaks.peak_instruction_id;

-- The metrics, which are columns of `module_memory`: see METRICS in `schema/metrics.py`.
--
-- A row per metric.
CREATE VIEW _metric_names AS
SELECT
    '__metric__' AS metric,
    '__better__' = 'higher' AS is_better_higher,
    __regresses__ AS regresses;

-- What each module needs in each memory space, metric by metric.
--
-- A row per dump, memory space and metric. `peaks` has the same values, a column a metric.
--
-- Key: dump_id, memory_space, metric.
CREATE VIEW metrics AS
SELECT
    module_id,
    memory_space,
    space,
    metric,
    value_bytes
FROM module_memory
UNPIVOT INCLUDE NULLS (
    value_bytes FOR metric IN (
        __metric__,
    )
);
