-- Examples of every public table and view: the relation and a title, then the query. A title that
-- is a question is one of the thirty questions of the documentation.

-- runs: The newest runs
SELECT run_id, run_at
FROM runs
ORDER BY run_at DESC, run_seq DESC
LIMIT 5;

-- run_parts: The hosts of each run
SELECT run_id, COUNT(*) AS parts
FROM run_parts
GROUP BY run_id
ORDER BY run_id;

-- journal: What changed the warehouse last
SELECT entered_at, action, run_id, detail
FROM journal
ORDER BY entry DESC
LIMIT 5;

-- run_labels: Which jax and libtpu did each night use?
SELECT
    run_id,
    MAX(value) FILTER (key = 'jax') AS jax,
    MAX(value) FILTER (key = 'libtpu') AS libtpu
FROM run_labels
GROUP BY run_id
ORDER BY run_id;

-- run_labels: How does the peak grow with the batch?
SELECT
    peaks.workload,
    CAST(run_labels.value AS INTEGER) AS batch,
    MAX(peaks.peak_bytes) AS peak_bytes
FROM peaks
INNER JOIN run_labels ON run_labels.run_id = peaks.run_id AND run_labels.key = 'batch'
WHERE peaks.is_entry
GROUP BY peaks.workload, batch
ORDER BY peaks.workload, batch;

-- dumps: How many programs does each workload have?
SELECT workload, COUNT(DISTINCT module_name) AS programs
FROM dumps
GROUP BY workload
ORDER BY programs DESC, workload;

-- dumps: The programs of each device
SELECT DISTINCT device_kind, workload, module_name
FROM dumps
WHERE device_kind IS NOT NULL
ORDER BY device_kind, workload, module_name;

-- dumps: The programs that most runs share, unchanged
SELECT workload, module_name, module_id, COUNT(DISTINCT run_id) AS runs
FROM dumps
WHERE module_id IS NOT NULL
GROUP BY workload, module_name, module_id
ORDER BY runs DESC, workload, module_name
LIMIT 10;

-- dumps: The program that leaves least room on each kind of device
SELECT
    device_kind,
    MIN_BY(dumps.workload, headroom_bytes) AS workload,
    MIN(headroom_bytes) AS headroom_bytes
FROM peaks
INNER JOIN dumps USING (dump_id)
WHERE is_latest AND headroom_bytes IS NOT NULL
GROUP BY device_kind
ORDER BY headroom_bytes;

-- dump_files: What is wrong with files, or was not understood
SELECT run_id, workload, path, message
FROM dump_files
INNER JOIN dumps USING (dump_id)
WHERE dump_files.message IS NOT NULL
ORDER BY run_id, workload, path;

-- dump_files: How many bytes of each kind were read
SELECT kind, COUNT(*) AS files, SUM(bytes) AS total_bytes
FROM dump_files
GROUP BY kind
ORDER BY total_bytes DESC NULLS LAST;

-- run_programs: The programs of the newest run, with the hosts that have them
SELECT workload, module_name, hosts, differing, peak_bytes
FROM run_programs
WHERE run_id = (SELECT MAX_BY(run_id, run_seq) FROM runs)
ORDER BY peak_bytes DESC NULLS LAST, workload, module_name
LIMIT 10;

-- differing_hosts: The hosts that have other programs than most
SELECT run_id, host, module_name, differs_in, usual_peak_bytes, peak_bytes
FROM differing_hosts
ORDER BY run_id, host, module_name
LIMIT 10;

-- file_sets: The files that most dumps share, unchanged
SELECT name, kind, COUNT(*) AS dumps, COUNT(DISTINCT run_id) AS runs
FROM file_sets
INNER JOIN dumps USING (files_id)
GROUP BY files_id, name, kind
ORDER BY dumps DESC, name
LIMIT 10;

-- modules: How good the figures are
SELECT origin, COUNT(*) AS modules
FROM modules
GROUP BY origin
ORDER BY origin;

-- entry_shapes: The largest arguments
SELECT workload, argument_name, shape, padded_bytes
FROM entry_shapes
INNER JOIN latest USING (module_id)
WHERE NOT is_output
ORDER BY padded_bytes DESC NULLS LAST
LIMIT 10;

-- entry_shapes: Bytes of arguments that are sharded, and of those that are not
SELECT
    workload,
    CASE
        WHEN sharding IS NULL THEN 'not told'
        WHEN sharding = '{replicated}' THEN 'replicated'
        ELSE 'sharded'
    END AS kind,
    SUM(padded_bytes) AS padded_bytes
FROM entry_shapes
INNER JOIN latest USING (module_id)
WHERE NOT is_output AND is_entry
GROUP BY module_id, workload, kind
ORDER BY padded_bytes DESC, workload, kind;

-- module_memory: The names of the memory spaces
SELECT memory_space, space_name, COUNT(*) AS modules
FROM module_memory
GROUP BY memory_space, space_name
ORDER BY memory_space, space_name;

-- allocations: The largest allocations of today
SELECT workload, memory_space, allocation_index, size_bytes, is_temp
FROM allocations
INNER JOIN latest USING (module_id)
ORDER BY size_bytes DESC
LIMIT 10;

-- values: Bytes of values in HBM by element type
SELECT workload, element_type, SUM(size_bytes) AS size_bytes
FROM "values"
INNER JOIN latest USING (module_id)
WHERE memory_space = 0
GROUP BY workload, element_type
ORDER BY size_bytes DESC NULLS LAST;

-- alias_sets: How many values share a buffer
SELECT workload, COUNT(*) AS sets
FROM alias_sets
INNER JOIN latest USING (module_id)
GROUP BY workload
ORDER BY workload;

-- residuals: Residuals that are stacked over layers
SELECT workload, layers, COUNT(*) AS residuals
FROM residuals
INNER JOIN latest USING (module_id)
GROUP BY workload, layers
ORDER BY workload, layers;

-- positions: Values with the most positions
SELECT module_id, value_id, COUNT(*) AS positions
FROM positions
GROUP BY module_id, value_id
ORDER BY positions DESC, module_id, value_id
LIMIT 5;

-- uses: Values with the most uses
SELECT module_id, value_id, COUNT(*) AS uses
FROM uses
GROUP BY module_id, value_id
ORDER BY uses DESC, module_id, value_id
LIMIT 5;

-- live_ranges: Values that live longest
SELECT workload, value_id, end_time - start_time + 1 AS life
FROM live_ranges
INNER JOIN latest USING (module_id)
ORDER BY life DESC, workload, value_id
LIMIT 5;

-- instructions: The opcodes that programs have most of
SELECT workload, opcode, COUNT(*) AS instructions
FROM instructions
INNER JOIN latest USING (module_id)
GROUP BY workload, opcode
ORDER BY instructions DESC, workload, opcode
LIMIT 10;

-- instructions: The programs with the largest share of copies
SELECT
    workload,
    latest.module_name,
    COUNT(*) FILTER (opcode IN ('copy', 'copy-start', 'copy-done')) AS copies,
    COUNT(*) AS of_instructions
FROM instructions
INNER JOIN latest USING (module_id)
WHERE is_entry
GROUP BY module_id, workload, latest.module_name
ORDER BY copies / of_instructions DESC, workload, latest.module_name;

-- scopes: Layers of each part of the program
SELECT workload, fold, COUNT(DISTINCT module_path) AS layers
FROM scopes
INNER JOIN latest USING (module_id)
GROUP BY workload, fold
ORDER BY layers DESC, workload, fold
LIMIT 10;

-- operands: Instructions with the most operands
SELECT module_id, instruction, COUNT(*) AS operands
FROM operands
INNER JOIN instructions USING (module_id, instruction_id)
GROUP BY module_id, instruction
ORDER BY operands DESC, module_id, instruction
LIMIT 5;

-- computations: Computations of each program
SELECT workload, COUNT(*) AS computations
FROM computations
INNER JOIN latest USING (module_id)
GROUP BY workload
ORDER BY computations DESC, workload;

-- control_dependencies: What runs before what although nothing of it is read
SELECT latest.module_name, earlier.instruction AS earlier, later.instruction AS later
FROM control_dependencies AS ordered
INNER JOIN latest USING (module_id)
INNER JOIN instructions AS earlier
    ON earlier.module_id = ordered.module_id
        AND earlier.instruction_id = ordered.predecessor_instruction_id
INNER JOIN instructions AS later
    ON later.module_id = ordered.module_id
        AND later.instruction_id = ordered.instruction_id
ORDER BY latest.module_name, earlier, later
LIMIT 5;

-- calls: What calls computations
SELECT attribute, COUNT(*) AS calls
FROM calls
GROUP BY attribute
ORDER BY calls DESC, attribute;

-- calls: The loops of each program, and the most trips of one
SELECT
    workload,
    latest.module_name,
    COUNT(*) AS loops,
    MAX(trip_count) AS most_trips,
    COUNT(*) FILTER (trip_count IS NULL) AS not_known
FROM calls
INNER JOIN latest USING (module_id)
WHERE attribute = 'body'
GROUP BY module_id, workload, latest.module_name
ORDER BY most_trips DESC NULLS LAST, workload, latest.module_name;

-- stack_frames: Functions of the program in Python
SELECT DISTINCT file, function
FROM stack_frames
ORDER BY file, function
LIMIT 20;

-- stack_frames: The Python functions that own most of a peak
SELECT file, "function", SUM(counted_bytes) AS counted_bytes
FROM peak_buffers
INNER JOIN stack_frames USING (module_id, stack_frame_id)
WHERE module_id = MODULE('llama-v5e') AND is_latest
GROUP BY file, "function"
ORDER BY counted_bytes DESC
LIMIT 3;

-- compiler_flags: Flags that differ between programs
SELECT flag, COUNT(DISTINCT value) AS different
FROM compiler_flags
GROUP BY flag
ORDER BY different DESC, flag
LIMIT 10;

-- compiler_flags: The values that a flag had, and the first and last run with each
SELECT
    compiler_flags.flag,
    compiler_flags.value,
    ARG_MIN(runs.run_id, runs.run_at) AS first_run,
    ARG_MAX(runs.run_id, runs.run_at) AS last_run
FROM dumps
INNER JOIN runs USING (run_id)
INNER JOIN compiler_flags USING (flags_id)
GROUP BY compiler_flags.flag, compiler_flags.value
ORDER BY compiler_flags.flag, MIN(runs.run_at), compiler_flags.value
LIMIT 10;

-- reported_peak: What XLA itself says is largest at the peak
SELECT workload, rank, instruction, size_bytes
FROM reported_peak
INNER JOIN latest USING (module_id)
ORDER BY size_bytes DESC, workload, rank
LIMIT 5;

-- occupancy: The fullest moment of each program
SELECT workload, memory_space, MAX(occupied_bytes) AS peak_bytes
FROM occupancy
INNER JOIN latest USING (module_id)
GROUP BY workload, memory_space
ORDER BY peak_bytes DESC;

-- module_memory: What donation saves of each program
SELECT workload, memory_space, alias_bytes
FROM module_memory
INNER JOIN latest USING (module_id)
WHERE alias_bytes > 0
ORDER BY alias_bytes DESC;

-- history: Which programs changed, when, and why?
SELECT run_id, workload, module_name, cause
FROM history
WHERE cause IS NOT NULL
ORDER BY run_id, workload;

-- causes: What made a program grow, in bytes?
SELECT run_id, branch, workload, term, change_bytes, source
FROM causes
INNER JOIN history USING (dump_id)
WHERE change_bytes > 0
ORDER BY change_bytes DESC
LIMIT 10;

-- causes: What each kind of cause added and took away, over all runs
SELECT
    kind,
    SUM(change_bytes) FILTER (change_bytes > 0) AS added_bytes,
    SUM(change_bytes) FILTER (change_bytes < 0) AS removed_bytes
FROM causes
INNER JOIN dumps USING (dump_id)
WHERE workload = 'llama-v5e'
GROUP BY kind
ORDER BY SUM(change_bytes) DESC NULLS LAST, kind;

-- series: The programs that are gone, and since when
SELECT branch, workload, module_name, last_run_id, runs_since
FROM series
WHERE NOT is_alive
ORDER BY last_run_at DESC, workload, module_name;

-- missing: What each night lacks
SELECT run_id, branch, workload, module_name, last_run_id
FROM missing
ORDER BY run_at, workload, module_name;

-- trends_by_space: How the peak of VMEM changed over the nights
SELECT run_id, branch, workload, value, change
FROM trends_by_space
WHERE space = 'vmem' AND metric = 'peak_bytes'
ORDER BY branch, run_at, workload;

-- history: When a program that was missing came back
SELECT
    before.run_id AS last_seen,
    history.run_id AS back_in,
    history.branch,
    history.workload,
    history.missed_runs
FROM history
INNER JOIN dumps AS before ON before.dump_id = history.previous_dump_id
WHERE history.missed_runs > 0
ORDER BY back_in, history.workload;

-- dump_series: How the programs of a run were recognised
SELECT run_id, matched_by, COUNT(*) AS programs
FROM dump_series
INNER JOIN dumps USING (dump_id)
GROUP BY run_id, matched_by
ORDER BY run_id, programs DESC;

-- donations: How many arguments are donated, and how many could be?
SELECT workload, paired_by, COUNT(*) AS arguments
FROM donations
INNER JOIN latest USING (module_id)
GROUP BY workload, paired_by
ORDER BY workload, paired_by;

-- donation_copies: Donated arguments that XLA copies all the same
SELECT
    workload,
    donation_copies.parameter_number,
    donation_copies.parameter_shape_index,
    instruction
FROM donation_copies
INNER JOIN latest USING (module_id)
INNER JOIN instructions USING (module_id, instruction_id)
ORDER BY ALL;

-- accepted_changes: Growth that was accepted
SELECT run_id, workload, metric, accepted_bytes, reason
FROM accepted_changes
INNER JOIN dumps USING (dump_id)
ORDER BY accepted_at;

-- oom_reports: Which programs ran out of memory, and by how much?
SELECT
    oom_reports.run_id,
    COALESCE(oom_reports.module_name, dumps.module_name) AS module_name,
    oom_reports.space_name,
    oom_reports.used_bytes,
    oom_reports.capacity_bytes,
    oom_reports.exceeded_bytes
FROM oom_reports
LEFT JOIN dumps USING (dump_id)
ORDER BY oom_reports.exceeded_bytes DESC NULLS LAST;

-- oom_buffers: The largest where memory ran out
SELECT run_id, rank, size_bytes, shape, op_name
FROM oom_buffers
ORDER BY size_bytes DESC
LIMIT 10;

-- peaks: Which programs need most HBM today?
SELECT workload, module_name, peak_bytes, headroom_bytes
FROM peaks
WHERE is_latest AND is_entry
ORDER BY peak_bytes DESC NULLS LAST;

-- peaks: Which programs come within 10 % of the device's memory?
SELECT workload, module_name, reserved_bytes, headroom_bytes
FROM peaks
WHERE is_latest AND headroom_bytes < 0.1 * (headroom_bytes + reserved_bytes)
ORDER BY headroom_bytes;

-- peaks_by_space: VMEM that each program needs at its peak
SELECT workload, module_name, peak_bytes
FROM peaks_by_space
WHERE is_latest AND space = 'vmem'
ORDER BY peak_bytes DESC;

-- peaks: What is the largest peak of each night?
SELECT run_id, branch, MAX(peak_bytes) AS peak_bytes
FROM peaks
GROUP BY run_id, run_at, branch
ORDER BY branch, run_at;

-- peaks: How do two jax versions compare?
SELECT
    run_labels.value AS jax,
    peaks.workload,
    MAX(peaks.peak_bytes) AS peak_bytes
FROM peaks
INNER JOIN run_labels ON run_labels.run_id = peaks.run_id AND run_labels.key = 'jax'
WHERE peaks.is_entry
GROUP BY jax, peaks.workload
ORDER BY peaks.workload, jax;

-- metrics: All metrics of a program in HBM
SELECT metric, value
FROM metrics
WHERE is_latest AND workload = 'llama-v5e'
ORDER BY value DESC NULLS LAST;

-- latest: What each name means today
SELECT workload, module_name, run_id
FROM latest
ORDER BY workload, module_name;

-- latest: How many runs each program has been what it is
SELECT workload, module_name, COUNT(DISTINCT dumps.run_id) AS runs
FROM latest
INNER JOIN dumps USING (module_id, workload, module_name)
GROUP BY module_id, workload, module_name
ORDER BY runs DESC, workload, module_name;

-- runs_summary: How many new programs does each night bring?
SELECT run_id, branch, dumps, new_modules, largest_peak_bytes
FROM runs_summary
ORDER BY run_at DESC;

-- trends: How did a program's peak change over the nights?
SELECT run_id, branch, value, change, cause
FROM trends
WHERE workload = 'llama-v5e' AND metric = 'peak_bytes'
ORDER BY branch, run_at;

-- trends: Programs above the best that they ever were
SELECT workload, module_name, value, best_value
FROM trends
WHERE is_latest AND metric = 'peak_bytes' AND value > best_value
ORDER BY value - best_value DESC;

-- trends: The runs in which a peak fell below all before
SELECT run_id, branch, workload, module_name, value
FROM trends
WHERE metric = 'peak_bytes' AND is_entry
QUALIFY
    value < MIN(value) OVER (
        PARTITION BY series_id
        ORDER BY run_number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
ORDER BY run_at, workload, module_name;

-- regressions: Which commit made a program grow?
SELECT
    regressions.run_id,
    regressions.branch,
    regressions.workload,
    regressions.change,
    run_labels.value AS made_by
FROM regressions
INNER JOIN run_labels ON run_labels.run_id = regressions.run_id AND run_labels.key = 'commit'
WHERE regressions.metric = 'peak_bytes'
ORDER BY regressions.change DESC;

-- regressions: What grew by more than 1 % in the last runs
SELECT run_id, branch, workload, metric, previous_value, value, cause
FROM regressions
ORDER BY run_at DESC, change DESC, workload, metric
LIMIT 20;

-- scope_trends: Which scopes grew most?
SELECT run_id, branch, workload, scope, SUM(change_bytes) AS change_bytes
FROM scope_trends
GROUP BY run_id, branch, workload, scope
HAVING SUM(change_bytes) > 0
ORDER BY change_bytes DESC
LIMIT 10;

-- buffers: Which buffers live longest?
SELECT workload, instruction, shape, size_bytes, end_time - start_time + 1 AS life
FROM buffers
WHERE is_latest AND category = 'temp' AND memory_space = 0
ORDER BY life DESC, size_bytes DESC
LIMIT 10;

-- peak_buffers: What fills HBM at the peak?
SELECT rank, counted_bytes, role, shape, source_file, source_line
FROM peak_buffers
WHERE is_latest AND workload = 'llama-v5e'
ORDER BY rank
LIMIT 10;

-- peak_buffers: Bytes of the peak by role and element type
SELECT "role", element_type, SUM(counted_bytes) AS counted_bytes
FROM peak_buffers
WHERE is_latest AND is_entry
GROUP BY "role", element_type
ORDER BY counted_bytes DESC
LIMIT 10;

-- peak_buffers: The largest arguments that are held at the peak, by name
SELECT workload, module_name, op_name, counted_bytes
FROM peak_buffers
WHERE category = 'argument' AND is_latest
ORDER BY counted_bytes DESC, workload, op_name
LIMIT 10;

-- peak_buffers: How few buffers make nine tenths of each peak
SELECT
    peak_buffers.workload,
    peak_buffers.module_name,
    COUNT(*) FILTER (running_bytes - counted_bytes < 0.9 * peaks.peak_bytes) AS buffers,
    COUNT(*) AS of_buffers
FROM peak_buffers
INNER JOIN peaks USING (dump_id)
WHERE peak_buffers.is_latest AND peak_buffers.is_entry
GROUP BY dump_id, peak_buffers.workload, peak_buffers.module_name
ORDER BY buffers, peak_buffers.workload;

-- peak_buffers: Results of collectives that are held at the peak
SELECT workload, module_name, opcode, COUNT(*) AS buffers, SUM(counted_bytes) AS counted_bytes
FROM peak_buffers
WHERE is_latest
    AND REGEXP_MATCHES(opcode, '^(all-|reduce-scatter|collective-)')
GROUP BY dump_id, workload, module_name, opcode
ORDER BY counted_bytes DESC, workload, opcode;

-- timeline: How full is memory over the schedule?
SELECT start_time // 100 * 100 AS time, MAX(occupied_bytes) AS occupied_bytes
FROM timeline
WHERE is_latest AND workload = 'llama-v5e'
GROUP BY time
ORDER BY time;

-- timeline: For how much of the schedule each program needs nine tenths of its peak
SELECT
    timeline.workload,
    timeline.module_name,
    SUM(timeline.end_time - timeline.start_time + 1) AS steps,
    MAX(peaks.schedule_length) AS schedule_length
FROM timeline
INNER JOIN peaks USING (dump_id)
WHERE timeline.is_latest
    AND timeline.occupied_bytes >= 0.9 * peaks.peak_bytes
GROUP BY timeline.dump_id, timeline.workload, timeline.module_name
ORDER BY steps DESC, timeline.workload, timeline.module_name;

-- timeline: How full HBM is when VMEM is fullest
SELECT
    vmem.workload,
    vmem.module_name,
    PCT(vmem.peak_bytes, vmem.capacity_bytes) AS vmem_pct,
    PCT(hbm.occupied_bytes, peaks.peak_bytes) AS pct_of_peak
FROM peaks_by_space AS vmem
INNER JOIN peaks ON peaks.dump_id = vmem.dump_id
INNER JOIN timeline AS hbm
    ON hbm.dump_id = vmem.dump_id
        AND vmem.peak_time BETWEEN hbm.start_time AND hbm.end_time
WHERE vmem.space = 'vmem' AND vmem.is_latest
ORDER BY vmem_pct DESC, vmem.workload, vmem.module_name;

-- timeline_by_space: How full each memory space is at its peak
SELECT workload, space, MAX(occupied_bytes) AS occupied_bytes
FROM timeline_by_space
WHERE is_latest
GROUP BY workload, space
ORDER BY workload, space;

-- owners: Which lines of Python own most?
SELECT workload, owner, counted_bytes, share
FROM owners
WHERE is_latest AND kind = 'source' AND owner NOT LIKE '(%'
ORDER BY counted_bytes DESC
LIMIT 10;

-- owners: What does each scope own?
SELECT workload, owner, SUM(counted_bytes) AS counted_bytes
FROM owners
WHERE is_latest AND kind = 'scope'
GROUP BY workload, owner
ORDER BY counted_bytes DESC;

-- owners: How much is of the backward pass?
SELECT workload, owner AS pass, SUM(counted_bytes) AS counted_bytes, SUM(share) AS share
FROM owners
WHERE is_latest AND kind = 'pass'
GROUP BY dump_id, workload, owner
ORDER BY workload, counted_bytes DESC;

-- peak_buffers_by_space: The largest buffer of each memory space
SELECT workload, space, MAX(counted_bytes) AS largest_bytes
FROM peak_buffers_by_space
WHERE is_latest
GROUP BY workload, space
ORDER BY workload, space;

-- owners: Which operations own most?
SELECT workload, owner AS operation, counted_bytes
FROM owners
WHERE is_latest AND kind = 'op'
ORDER BY counted_bytes DESC
LIMIT 10;

-- owners: How much are weights, optimizer state and activations?
SELECT workload, owner AS "role", SUM(counted_bytes) AS counted_bytes, SUM(share) AS share
FROM owners
WHERE is_latest AND kind = 'role'
GROUP BY dump_id, workload, owner
ORDER BY workload, counted_bytes DESC;

-- owners_by_space: How much memory is float32?
SELECT workload, space, counted_bytes, share
FROM owners_by_space
WHERE is_latest AND kind = 'dtype' AND owner = 'f32'
ORDER BY counted_bytes DESC;

-- owners_by_space: What fills VMEM, by operation
SELECT workload, owner AS operation, counted_bytes
FROM owners_by_space
WHERE is_latest AND space = 'vmem' AND kind = 'op'
ORDER BY counted_bytes DESC
LIMIT 10;

-- fragmentation: What does packing waste?
SELECT workload, fragmentation_bytes, wasted
FROM fragmentation
WHERE is_latest
ORDER BY fragmentation_bytes DESC;

-- fragmentation_by_space: What packing wastes in all memory spaces
SELECT workload, space, fragmentation_bytes, wasted
FROM fragmentation_by_space
WHERE is_latest
ORDER BY fragmentation_bytes DESC;

-- padding: Which values does tiling pad most?
SELECT workload, shape, padding_bytes, times_logical
FROM padding
WHERE is_latest AND is_live_at_peak
ORDER BY padding_bytes DESC
LIMIT 10;

-- saved_for_backward: What is kept for the backward pass?
SELECT workload, shape, layers, size_bytes, source_line, read_source_line
FROM saved_for_backward
WHERE is_latest AND memory_space = 0
ORDER BY size_bytes DESC
LIMIT 10;

-- saved_for_backward: Operations whose results are kept, with bytes of all layers
SELECT workload, operation, SUM(size_bytes) AS size_bytes, COUNT(*) AS residuals
FROM saved_for_backward
WHERE is_latest AND memory_space = 0 AND is_live_at_peak
GROUP BY workload, operation
ORDER BY size_bytes DESC
LIMIT 10;

-- saved_for_backward: Scopes whose residuals are idle most
SELECT workload, scope, COUNT(*) AS residuals, SUM(size_bytes * idle_time) AS idle_byte_steps
FROM saved_for_backward
WHERE memory_space = 0 AND is_latest
GROUP BY workload, scope
ORDER BY idle_byte_steps DESC, workload, scope
LIMIT 10;

-- long_lived: What is idle across the peak?
SELECT workload, instruction, size_bytes, peak_idle_time
FROM long_lived
WHERE is_latest AND is_live_at_peak AND peak_idle_time > 0
ORDER BY size_bytes DESC
LIMIT 10;

-- missed_donations: Which arguments could be donated?
SELECT workload, argument_name, saving_bound_bytes, paired_by
FROM missed_donations
WHERE is_latest AND read_later_by IS NULL
ORDER BY saving_bound_bytes DESC;

-- wasted_donations: Donated arguments that are copied or unused
SELECT workload, argument_name, why, copied_bytes, is_live_at_peak
FROM wasted_donations
WHERE is_latest
ORDER BY copied_bytes DESC NULLS LAST;

-- kernels: Which kernels take most memory of their own?
SELECT workload, instruction, scoped_bytes, limit_bytes, share
FROM kernels
WHERE is_latest
ORDER BY scoped_bytes DESC NULLS LAST
LIMIT 10;

-- kernel_parts: The largest arrays that kernels keep on chip
SELECT workload, instruction, kind, kernel_parts.shape, buffers, kernel_parts.size_bytes
FROM kernel_parts
INNER JOIN instructions USING (module_id, instruction_id)
INNER JOIN latest USING (module_id)
WHERE kernel_parts.space = 'vmem'
ORDER BY kernel_parts.size_bytes DESC, workload, instruction, part
LIMIT 10;

-- kernel_parts: What each kernel spends on pipelined blocks
SELECT workload, instruction, COUNT(*) AS blocks, SUM(kernel_parts.size_bytes) AS pipelined_bytes
FROM kernel_parts
INNER JOIN instructions USING (module_id, instruction_id)
INNER JOIN latest USING (module_id)
WHERE kernel_parts.space = 'vmem' AND buffers = 2
GROUP BY module_id, workload, instruction
ORDER BY pipelined_bytes DESC, workload, instruction;

-- kernel_trends: How the largest kernel of each program changes
SELECT run_id, branch, workload, memory_space, scoped_bytes, change_bytes
FROM kernel_trends
ORDER BY branch, run_at, workload;

-- work_by_scope: The scopes that compute most
SELECT workload, scope, pass, flops
FROM work_by_scope
WHERE is_latest
ORDER BY flops DESC, workload, scope
LIMIT 10;

-- work_by_scope: The parts that compute most, repeated layers as one
SELECT
    workload,
    module_name,
    COALESCE(folds.fold, scope) AS part,
    SUM(flops) AS flops
FROM work_by_scope
LEFT JOIN (SELECT DISTINCT module_id, scope, fold FROM scopes) AS folds USING (module_id, scope)
WHERE is_latest
GROUP BY dump_id, workload, module_name, part
ORDER BY flops DESC, workload, module_name, part
LIMIT 10;

-- work_by_pass: The work of each pass
SELECT workload, pass, flops, share
FROM work_by_pass
WHERE is_latest
ORDER BY flops DESC, workload, pass
LIMIT 10;

-- work_by_pass: FLOPs for each byte of the peak
SELECT
    peaks.workload,
    peaks.module_name,
    SUM(work_by_pass.flops) / MAX(peaks.peak_bytes) AS flops_a_byte
FROM work_by_pass
INNER JOIN peaks ON peaks.dump_id = work_by_pass.dump_id
WHERE peaks.is_latest
GROUP BY peaks.workload, peaks.module_name, peaks.dump_id
ORDER BY flops_a_byte DESC
LIMIT 10;

-- trends: The programs whose work changed, and why
SELECT run_id, branch, workload, value AS flops, change_ratio, cause
FROM trends
WHERE metric = 'flops' AND change <> 0
ORDER BY run_at, workload;

-- trends: Where memory was traded for compute, or back
SELECT
    trends.run_id,
    trends.branch,
    trends.workload,
    trends.change AS change_bytes,
    work.change AS change_flops
FROM trends
INNER JOIN trends AS work ON work.dump_id = trends.dump_id AND work.metric = 'flops'
WHERE trends.metric = 'peak_bytes' AND SIGN(trends.change) * SIGN(work.change) < 0
ORDER BY trends.run_at, trends.workload;

-- gib: The programs that need more than 1 GiB
SELECT workload, module_name, ROUND(GIB(peak_bytes), 2) AS peak_gib
FROM peaks
WHERE is_latest AND GIB(peak_bytes) > 1
ORDER BY peak_gib DESC, workload, module_name;

-- mib: Padding in MiB
SELECT workload, ROUND(MIB(padding_bytes), 1) AS padding_mib
FROM peaks
WHERE is_latest AND padding_bytes > 0
ORDER BY padding_mib DESC, workload;

-- pct: How many percent of the peak each role has
SELECT
    workload,
    owner AS "role",
    ROUND(PCT(SUM(counted_bytes), SUM(SUM(counted_bytes)) OVER (PARTITION BY dump_id)), 1)
        AS percent
FROM owners
WHERE kind = 'role' AND is_latest AND is_entry
GROUP BY dump_id, workload, owner
ORDER BY workload, percent DESC, "role";

-- run: What the newest run needs beside the one before
SELECT workload, module_name, run_id, peak_bytes
FROM peaks
WHERE run_id IN (RUN(-1), RUN(-2)) AND is_entry
ORDER BY workload, module_name, run_id;

-- module: The allocations of a program by its name
SELECT allocation_index, size_bytes
FROM allocations
WHERE module_id = MODULE('llama-v5e')
ORDER BY size_bytes DESC, allocation_index;

-- buffers_at: What takes HBM at time 100
SELECT counted_bytes, shape, op_name, occupied_from, occupied_to
FROM BUFFERS_AT(MODULE('llama-v5e'), 'hbm', 100)
ORDER BY counted_bytes DESC
LIMIT 5;

-- buffers_at: The buffers at the peak that are temps
SELECT counted_bytes, instruction, "role"
FROM BUFFERS_AT(MODULE('llama-v5e'), 0, NULL)
WHERE category = 'temp'
ORDER BY counted_bytes DESC;

-- live_at: How much of what is taken at time 100 is a value that lives then
SELECT
    space,
    SUM(counted_bytes) AS taken_bytes,
    SUM(counted_bytes) FILTER (100 BETWEEN start_time AND end_time) AS live_bytes
FROM LIVE_AT(MODULE('llama-v5e'), 100)
GROUP BY space
ORDER BY space;

-- holes_at: How fragmented HBM is at its peak
SELECT size_bytes, free_bytes, largest_hole_bytes, holes
FROM HOLES_AT(MODULE('llama-v5e'), 'hbm', NULL);

-- owners_of: The scopes that own the peak of HBM
SELECT owner, counted_bytes, share
FROM OWNERS_OF(MODULE('llama-v5e'), 'scope', in_space := 'hbm')
LIMIT 10;

-- owners_of: The roles at time 100
SELECT owner, counted_bytes
FROM OWNERS_OF(MODULE('llama-v5e'), 'role', schedule_time := 100)
ORDER BY counted_bytes DESC;

-- owners_of: The passes that own HBM at three quarters of the schedule
WITH asked AS (
    SELECT schedule_length * 3 // 4 AS time FROM modules WHERE module_id = MODULE('llama-v5e')
)

SELECT owner, counted_bytes
FROM OWNERS_OF(
        MODULE('llama-v5e'),
        'pass',
        in_space := 'hbm',
        schedule_time := (SELECT asked.time FROM asked)
    )
ORDER BY counted_bytes DESC;

-- callers_of: Who calls the line that owns most
SELECT depth, "function", file, line, counted_bytes
FROM CALLERS_OF(MODULE('llama-v5e'), 'zoo.py:40', in_space := 'hbm')
ORDER BY counted_bytes DESC, depth;

-- timeline_of: When HBM is fullest
SELECT start_time, end_time, occupied_bytes, instruction
FROM TIMELINE_OF(MODULE('llama-v5e'))
WHERE space = 'hbm'
ORDER BY occupied_bytes DESC, start_time
LIMIT 3;

-- diff_buffers: What grew from one program to another
SELECT change_bytes, what, shape, source
FROM DIFF_BUFFERS(MODULE('llama-v5e'), MODULE('decode-v5e'))
WHERE memory_space = 0
LIMIT 5;

-- history_of: How the peak of a series went
SELECT run_id, value, change, cause
FROM HISTORY_OF(
        (SELECT series_id FROM trends WHERE workload = 'llama-v5e' AND is_latest LIMIT 1)
    )
WHERE metric = 'peak_bytes';

-- compiler_pass_steps: Which passes of the compiler moved the estimated peak
SELECT workload, module_name, step, compiler_pass, change_bytes, changes
FROM compiler_pass_steps
WHERE is_latest AND change_bytes <> 0
ORDER BY workload, module_name, step;

-- compiler_passes: How many texts between passes each program has
SELECT module_id, COUNT(*) AS texts, SUM(text_bytes) AS text_bytes
FROM compiler_passes
GROUP BY module_id
ORDER BY module_id;

-- compiler_pass_events: What passes did to large buffers of the peak
SELECT compiler_pass, event, COUNT(*) AS buffers
FROM compiler_pass_events
INNER JOIN compiler_passes USING (module_id, step)
GROUP BY compiler_pass, event
ORDER BY buffers DESC, compiler_pass, event
LIMIT 10;
