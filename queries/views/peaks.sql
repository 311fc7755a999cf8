-- What each dumped module needs in each memory space, and when it needs most.
--
-- A row per dump and memory space. Start here: the largest peak_bytes in memory space 0 must
-- fit into HBM.
--
-- run_id: the run, usually a night
-- run_at: when the run's programs were compiled (UTC)
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- occurrence: 1 for the first module of its name and platform in run and workload
-- platform: cpu, gpu or tpu
-- memory_space: XLA's number of the space; 0 is the device's main memory
-- space_name: the space's name, null if the dump names none
-- peak_bytes: the most that is occupied at one time
-- total_bytes: sum of the allocations
-- headroom_bytes: the device's memory minus what is reserved for the program, total_bytes -
--     thread_local_bytes; null for other memory spaces, and where the device is not known
-- argument_bytes: allocations of parameters
-- output_bytes: allocations that may live out
-- alias_bytes: allocations that are both
-- constant_bytes: allocations of constants
-- thread_local_bytes: thread-local allocations
-- temp_bytes: the preallocated temp
-- fragmentation_bytes: total_bytes - thread_local_bytes - peak_bytes, what packing wastes
-- fragmentation: fragmentation_bytes over temp_bytes
-- padding_bytes: size - logical size of what is live at the peak
-- live_bound_bytes: the most that is live in the temps at one time
-- packing_bytes: temp_bytes - live_bound_bytes, what the compiler's packing takes above it
-- origin: dumped; derived: live ranges worked out, exact; estimated: without buffer assignment
-- peak_time: the first time of the peak, a position in the schedule
-- schedule_length: instructions in the schedule
-- peak_instruction: the instruction at peak_time
-- status: ok, partial or failed, see `dumps`
-- oom: XLA ran out of memory compiling it
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
SELECT
    _peaks.run_id,
    _peaks.run_at,
    _peaks.workload,
    _peaks.module_name,
    _peaks.occurrence,
    _peaks.platform,
    _peaks.memory_space,
    _peaks.space_name,
    _peaks.peak_bytes,
    _peaks.total_bytes,
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
        AND instructions.instruction_id = _peaks.peak_instruction_id
