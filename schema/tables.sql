-- A new warehouse. Generated from schema/tables.py by `make schema`.
CREATE TABLE runs (
    run_id TEXT NOT NULL,
    run_at TIMESTAMP WITHOUT TIME ZONE NOT NULL,
    run_seq INTEGER NOT NULL,
    ingested_at TIMESTAMP WITHOUT TIME ZONE NOT NULL,
    source TEXT NOT NULL,
    tool_version TEXT NOT NULL,
    claimed_at TIMESTAMP WITHOUT TIME ZONE,
    compiled_at TIMESTAMP WITHOUT TIME ZONE,
    PRIMARY KEY (run_id)
);
COMMENT ON TABLE runs IS 'One ingested run, for example a night.';
COMMENT ON COLUMN runs.run_id IS 'the user''s name for the run';
COMMENT ON COLUMN runs.run_at IS 'the time by which runs are ordered (UTC): claimed_at, else when the run entered';
COMMENT ON COLUMN runs.run_seq IS 'the order in which runs first entered: it orders equal run_at';
COMMENT ON COLUMN runs.ingested_at IS 'when the run was first ingested (UTC)';
COMMENT ON COLUMN runs.source IS 'the ingested path, as given';
COMMENT ON COLUMN runs.tool_version IS 'the memhouse version that ingested the run';
COMMENT ON COLUMN runs.claimed_at IS 'the date that the user claims, by --at or in the run''s name (UTC); null without one';
COMMENT ON COLUMN runs.compiled_at IS 'the time of the newest file (UTC) of the part that entered first; copies and archives change it: it orders nothing';
CREATE TABLE run_parts (
    run_id TEXT NOT NULL,
    host TEXT,
    source TEXT NOT NULL,
    entered_at TIMESTAMP WITHOUT TIME ZONE NOT NULL
);
COMMENT ON TABLE run_parts IS 'What a run consists of: the parts that hosts ingested by themselves. Key: run_id, host.';
COMMENT ON COLUMN run_parts.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN run_parts.host IS 'the host that --host named; null for what was ingested without';
COMMENT ON COLUMN run_parts.source IS 'the ingested path, as given';
COMMENT ON COLUMN run_parts.entered_at IS 'when the part entered, or was replaced (UTC)';
CREATE TABLE journal (
    entry INTEGER NOT NULL,
    entered_at TIMESTAMP WITHOUT TIME ZONE NOT NULL,
    action ENUM('ingest', 'read again', 'replace', 'prune', 'label', 'accept', 'compact', 'upgrade', 'repair', 'import', 'sql') NOT NULL,
    run_id TEXT,
    host TEXT,
    detail TEXT NOT NULL,
    tool_version TEXT NOT NULL,
    reader_version INTEGER NOT NULL,
    by_whom TEXT NOT NULL
);
COMMENT ON TABLE journal IS 'Everything that changed the warehouse. Rows are only ever added. Key: entry.';
COMMENT ON COLUMN journal.entry IS 'the place in the order of all changes, from 1';
COMMENT ON COLUMN journal.entered_at IS 'when the change was made (UTC)';
COMMENT ON COLUMN journal.action IS 'ingest, read again, replace, prune, label, accept, compact, upgrade, repair, import, sql';
COMMENT ON COLUMN journal.run_id IS 'the run, which may be gone by now; null if no run was named';
COMMENT ON COLUMN journal.host IS 'the host whose part it is; null without one';
COMMENT ON COLUMN journal.detail IS 'what was done, in words';
COMMENT ON COLUMN journal.tool_version IS 'the memhouse version that made the change';
COMMENT ON COLUMN journal.reader_version IS 'the version of its readers, see `modules`';
COMMENT ON COLUMN journal.by_whom IS 'the user''s name on the machine; empty if it has none';
CREATE TABLE run_labels (
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
);
COMMENT ON TABLE run_labels IS 'A label of a run: branch, commit, jax version and the like.';
COMMENT ON COLUMN run_labels.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN run_labels.key IS 'the label''s name, for example branch, commit or jax';
COMMENT ON COLUMN run_labels.value IS 'the label''s value';
CREATE TABLE dumps (
    dump_id BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    module_name TEXT NOT NULL,
    module_number INTEGER,
    occurrence INTEGER NOT NULL,
    platform TEXT,
    target TEXT,
    compiler TEXT,
    module_id BIGINT,
    flags_id BIGINT,
    device_kind TEXT,
    device_memory_bytes BIGINT,
    topology TEXT,
    status ENUM('ok', 'partial', 'failed') NOT NULL,
    oom BOOLEAN NOT NULL,
    host TEXT,
    files_id BIGINT,
    PRIMARY KEY (dump_id)
);
COMMENT ON TABLE dumps IS 'A module as dumped in a run. Many dumps may share one module.';
COMMENT ON COLUMN dumps.dump_id IS 'hash of run, workload and the dump''s file name';
COMMENT ON COLUMN dumps.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN dumps.workload IS 'the dump''s folder relative to the ingested path, `.` if none';
COMMENT ON COLUMN dumps.module_name IS 'the HLO module''s name';
COMMENT ON COLUMN dumps.module_number IS 'the module''s number within its process (module_NNNN)';
COMMENT ON COLUMN dumps.occurrence IS '1 for the first module of its name and platform in run and workload';
COMMENT ON COLUMN dumps.platform IS 'cpu, gpu or tpu; null if the file''s name does not say';
COMMENT ON COLUMN dumps.target IS 'the target in the file''s name, for example sm_9.0a_gpu';
COMMENT ON COLUMN dumps.compiler IS 'libtpu''s changelist in the file''s name, for example 933746096';
COMMENT ON COLUMN dumps.module_id IS 'the content, see `modules`; null if nothing was readable';
COMMENT ON COLUMN dumps.flags_id IS 'the flags, see `compiler_flags`; null if none were dumped';
COMMENT ON COLUMN dumps.device_kind IS 'the target device as users name it, for example TPU v5e';
COMMENT ON COLUMN dumps.device_memory_bytes IS 'what a program may use of the target device''s memory; null if not known';
COMMENT ON COLUMN dumps.topology IS 'the number of TPU chips and hosts of the target';
COMMENT ON COLUMN dumps.status IS 'ok; partial: a part is missing or unreadable; failed: nothing read';
COMMENT ON COLUMN dumps.oom IS 'XLA ran out of memory while compiling the module';
COMMENT ON COLUMN dumps.host IS 'the host that ingested it, see `run_parts`; null without one';
COMMENT ON COLUMN dumps.files_id IS 'the files, see `file_sets` and `dump_files`';
CREATE TABLE file_sets (
    files_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BIGINT,
    sha256 TEXT,
    status ENUM('ok', 'partial', 'failed', 'contradicts', 'missing') NOT NULL,
    line INTEGER,
    message TEXT
);
COMMENT ON TABLE file_sets IS 'A file of the dumps of a set, and whether memhouse could read it: what many hosts and nights dump alike is stored once. `dump_files` has the files of each dump. Key: files_id, name.';
COMMENT ON COLUMN file_sets.files_id IS 'the set of files, see `dumps`: a hash of all its rows';
COMMENT ON COLUMN file_sets.name IS 'the file, relative to the dump''s workload; after a slash relative to the ingested path';
COMMENT ON COLUMN file_sets.kind IS 'what the file holds, for example live-range';
COMMENT ON COLUMN file_sets.bytes IS 'the uncompressed size; null if the file could not be read';
COMMENT ON COLUMN file_sets.sha256 IS 'SHA-256 of the uncompressed file, in hex; of a HloProto, one that equal messages share';
COMMENT ON COLUMN file_sets.status IS 'ok; failed: nothing was read; partial: a part was read; contradicts: contradicts another file; missing: the dump lacks the file';
COMMENT ON COLUMN file_sets.line IS 'the line that the message is about, from 1';
COMMENT ON COLUMN file_sets.message IS 'what is wrong, and what to do; of a file that is ok: what was not understood or cannot be known';
CREATE TABLE modules (
    module_id BIGINT NOT NULL,
    module_name TEXT NOT NULL,
    program_id BIGINT,
    skeleton_id BIGINT,
    schedule_length INTEGER,
    reported_total_bytes BIGINT,
    reported_peak_time INTEGER,
    reported_peak_bytes BIGINT,
    entry_signature TEXT,
    input_output_alias TEXT,
    buffer_donor TEXT,
    is_scheduled BOOLEAN,
    num_partitions INTEGER,
    replica_count INTEGER,
    origin ENUM('dumped', 'derived', 'estimated'),
    liveness_difference TEXT,
    reader_version INTEGER,
    grade INTEGER,
    assumed TEXT,
    flops BIGINT,
    unknown_loops INTEGER,
    PRIMARY KEY (module_id)
);
COMMENT ON TABLE modules IS 'A module''s content, stored once even if many runs dumped it.';
COMMENT ON COLUMN modules.module_id IS 'hash of the module''s name and its files'' content';
COMMENT ON COLUMN modules.module_name IS 'the HLO module''s name';
COMMENT ON COLUMN modules.program_id IS 'hash of what the program is: instructions, allocations, values and live ranges, without names, source lines and constants'' values; null without HLO text. Equal: the same memory program';
COMMENT ON COLUMN modules.skeleton_id IS 'hash of the arguments'' names and ranks: equal for another batch size or dtype';
COMMENT ON COLUMN modules.schedule_length IS 'instructions in the flattened schedule';
COMMENT ON COLUMN modules.reported_total_bytes IS 'XLA''s own `Total bytes used`, all spaces; where no text says it, all allocations';
COMMENT ON COLUMN modules.reported_peak_time IS 'the time of XLA''s own estimated peak; worked out as XLA does where origin is derived';
COMMENT ON COLUMN modules.reported_peak_bytes IS 'XLA''s own peak: the sum of logical sizes, without padding, over all memory spaces';
COMMENT ON COLUMN modules.entry_signature IS 'parameter and result shapes: entry_computation_layout';
COMMENT ON COLUMN modules.input_output_alias IS 'the results that reuse arguments, as XLA prints them';
COMMENT ON COLUMN modules.buffer_donor IS 'the arguments that are donated, although XLA has no result for them, as XLA prints them';
COMMENT ON COLUMN modules.is_scheduled IS 'the HLO text''s order is XLA''s schedule';
COMMENT ON COLUMN modules.num_partitions IS 'SPMD partitions the module was compiled for';
COMMENT ON COLUMN modules.replica_count IS 'replicas the module was compiled for';
COMMENT ON COLUMN modules.origin IS 'dumped: XLA''s own live ranges; derived: live ranges worked out from the schedule, exact; estimated: without a buffer assignment, or by rules that are assumed; null without figures';
COMMENT ON COLUMN modules.liveness_difference IS 'where the live ranges, positions or uses that follow from the HLO text differ from the dumped ones; null if they agree or nothing was compared';
COMMENT ON COLUMN modules.reader_version IS 'the version of the readers that worked out its rows; 0: before versions were kept';
COMMENT ON COLUMN modules.grade IS 'how good the figures are: 0 exact; 1 estimated; 2 estimated without a schedule; figures of one grade are never compared with those of another; null without figures';
COMMENT ON COLUMN modules.assumed IS 'the opcodes that no rule of dataflow covers, with how many instructions have each, for example all-to-all-start (12): what they do with memory is assumed, so that origin is estimated unless XLA''s own live ranges were dumped; null if there are none';
COMMENT ON COLUMN modules.flops IS 'the FLOPs of dots and convolutions in one execution, loops counted; null without HLO text';
COMMENT ON COLUMN modules.unknown_loops IS 'the loops whose trip count is not known: flops counts their bodies once';
CREATE TABLE entry_shapes (
    module_id BIGINT NOT NULL,
    is_output BOOLEAN NOT NULL,
    parameter_number INTEGER,
    shape_index TEXT NOT NULL,
    argument_name TEXT,
    sharding TEXT,
    shape TEXT NOT NULL,
    element_type TEXT,
    logical_bytes BIGINT,
    padded_bytes BIGINT
);
COMMENT ON TABLE entry_shapes IS 'An array in the entry computation''s arguments or result. Key: module_id, is_output, parameter_number, shape_index.';
COMMENT ON COLUMN entry_shapes.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN entry_shapes.is_output IS 'true for the result, false for an argument';
COMMENT ON COLUMN entry_shapes.parameter_number IS 'the argument''s number; null for the result';
COMMENT ON COLUMN entry_shapes.shape_index IS 'the part of the argument or result, `{}` for the whole';
COMMENT ON COLUMN entry_shapes.argument_name IS 'the argument''s name in the framework, for example p[''emb'']';
COMMENT ON COLUMN entry_shapes.sharding IS 'how the argument is sharded, as XLA prints it; null if not told';
COMMENT ON COLUMN entry_shapes.shape IS 'the shape with layout';
COMMENT ON COLUMN entry_shapes.element_type IS 'for example bf16';
COMMENT ON COLUMN entry_shapes.logical_bytes IS 'elements x element size; null if unbounded or not known';
COMMENT ON COLUMN entry_shapes.padded_bytes IS 'logical size plus tile padding; null if unbounded or not known';
CREATE TABLE memory_spaces (
    module_id BIGINT NOT NULL,
    memory_space INTEGER NOT NULL,
    space_name TEXT,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
);
COMMENT ON TABLE memory_spaces IS 'A memory space of a module. Key: module_id, memory_space.';
COMMENT ON COLUMN memory_spaces.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN memory_spaces.memory_space IS 'XLA''s number (color): 0 is the main memory, HBM';
COMMENT ON COLUMN memory_spaces.space_name IS 'the name in the memory usage report; of a TPU''s binary, libtpu''s; null if not named';
COMMENT ON COLUMN memory_spaces.space IS 'the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; vmem, smem, sflag, cmem or other';
CREATE TABLE allocations (
    module_id BIGINT NOT NULL,
    allocation_index INTEGER NOT NULL,
    memory_space INTEGER NOT NULL,
    size_bytes BIGINT NOT NULL,
    is_parameter BOOLEAN NOT NULL,
    parameter_number INTEGER,
    parameter_shape_index TEXT,
    is_output BOOLEAN NOT NULL,
    is_constant BOOLEAN NOT NULL,
    is_thread_local BOOLEAN NOT NULL,
    maybe_live_out BOOLEAN NOT NULL,
    is_temp BOOLEAN NOT NULL,
    shape TEXT,
    value_id INTEGER,
    peak_bytes BIGINT,
    peak_time INTEGER,
    address BIGINT,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
);
COMMENT ON TABLE allocations IS 'A buffer allocation. Key: module_id, allocation_index.';
COMMENT ON COLUMN allocations.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN allocations.allocation_index IS 'XLA''s number of the allocation';
COMMENT ON COLUMN allocations.memory_space IS 'the allocation''s memory space';
COMMENT ON COLUMN allocations.size_bytes IS 'the allocation''s size';
COMMENT ON COLUMN allocations.is_parameter IS 'holds an argument of the entry computation';
COMMENT ON COLUMN allocations.parameter_number IS 'the argument''s number';
COMMENT ON COLUMN allocations.parameter_shape_index IS 'the part of the argument, `{}` for the whole';
COMMENT ON COLUMN allocations.is_output IS 'holds the entry computation''s result';
COMMENT ON COLUMN allocations.is_constant IS 'holds a constant';
COMMENT ON COLUMN allocations.is_thread_local IS 'belongs to a computation within one instruction';
COMMENT ON COLUMN allocations.maybe_live_out IS 'may hold a result after the program has ended';
COMMENT ON COLUMN allocations.is_temp IS 'is the preallocated temp, shared by values over time';
COMMENT ON COLUMN allocations.shape IS 'the shape of the argument or result, without layout';
COMMENT ON COLUMN allocations.value_id IS 'the value that the allocation is for: the argument, the result, the constant; null of a temp';
COMMENT ON COLUMN allocations.peak_bytes IS 'of a temp: the maximum of its occupied bytes over time';
COMMENT ON COLUMN allocations.peak_time IS 'of a temp: the first time of peak_bytes';
COMMENT ON COLUMN allocations.address IS 'the address in the compiler''s process (some old dumps)';
COMMENT ON COLUMN allocations.space IS 'the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; vmem, smem, sflag, cmem or other';
CREATE TABLE values (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL,
    shape_index TEXT NOT NULL,
    is_phi BOOLEAN NOT NULL,
    memory_space INTEGER NOT NULL,
    allocation_index INTEGER,
    offset_bytes BIGINT,
    size_bytes BIGINT,
    logical_bytes BIGINT,
    shape TEXT GENERATED ALWAYS AS (coalesce(_short_shape, _long_shape[1])) VIRTUAL,
    _short_shape TEXT,
    _long_shape TEXT[],
    element_type TEXT,
    origin_instruction_id INTEGER,
    origin_rule ENUM('argument', 'own', 'moved', 'loop', 'fused', 'becomes', 'read', 'operand', 'weak'),
    pass ENUM('argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'),
    role ENUM('weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation', 'gradient', 'output', 'constant', 'workspace'),
    alias_set INTEGER,
    residual_id INTEGER,
    last_use_time INTEGER,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
);
COMMENT ON TABLE values IS 'An HLO value: one tensor, from definition to last use. Key: module_id, value_id.';
COMMENT ON COLUMN values.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN values.value_id IS 'XLA''s number of the value';
COMMENT ON COLUMN values.instruction_id IS 'the instruction that defines the value';
COMMENT ON COLUMN values.shape_index IS 'the part of the instruction''s shape, `{}` for the whole';
COMMENT ON COLUMN values.is_phi IS 'merges values of a loop or conditional';
COMMENT ON COLUMN values.memory_space IS 'the value''s memory space';
COMMENT ON COLUMN values.allocation_index IS 'the value''s allocation, see `allocations`';
COMMENT ON COLUMN values.offset_bytes IS 'the value''s start within the allocation';
COMMENT ON COLUMN values.size_bytes IS 'the occupied size, tiled and padded';
COMMENT ON COLUMN values.logical_bytes IS 'elements x element size; for a tuple: its index table; null if the size of the element type is not known';
COMMENT ON COLUMN values.shape IS 'the shape with layout';
COMMENT ON COLUMN values._short_shape IS '`shape` where it is up to 4096 bytes';
COMMENT ON COLUMN values._long_shape IS '`shape` where it is longer, as a list of one text';
COMMENT ON COLUMN values.element_type IS 'for example bf16; null for a tuple';
COMMENT ON COLUMN values.origin_instruction_id IS 'the instruction whose result the value holds; instruction_id only made it. Null without HLO text, and where nothing says what it holds';
COMMENT ON COLUMN values.origin_rule IS 'how the origin was found: argument, own, moved, loop, fused, becomes, read; operand (a guess: the largest operand) or weak (only a wrapper''s name)';
COMMENT ON COLUMN values.pass IS 'argument, forward, backward, rematerialised, optimizer; other without a backward pass, and for what depends on gradients in a program that does not train';
COMMENT ON COLUMN values.role IS 'weight, optimizer state, state, input, gathered weight, activation, gradient, output, constant or workspace';
COMMENT ON COLUMN values.alias_set IS 'the smallest value_id of those that must share a buffer; `alias_sets` has those in temps';
COMMENT ON COLUMN values.residual_id IS 'the residual that the value holds, see `residuals`';
COMMENT ON COLUMN values.last_use_time IS 'the last time at which an instruction computes from the value or copies it; in a loop until the body ends; an asynchronous copy counts at its start, though it reads until its done; null if nothing does, and without scheduled HLO text';
COMMENT ON COLUMN values.space IS 'the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; vmem, smem, sflag, cmem or other';
CREATE TABLE alias_sets (
    module_id BIGINT NOT NULL,
    alias_set INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    start_time INTEGER NOT NULL,
    end_time INTEGER NOT NULL,
    idle_start_time INTEGER NOT NULL,
    idle_end_time INTEGER NOT NULL,
    peak_idle_time INTEGER NOT NULL
);
COMMENT ON TABLE alias_sets IS 'Values that must share one buffer, in a temp allocation: loops, updates in place. Key: module_id, alias_set.';
COMMENT ON COLUMN alias_sets.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN alias_sets.alias_set IS 'the smallest value_id of the values';
COMMENT ON COLUMN alias_sets.value_id IS 'the largest of the values';
COMMENT ON COLUMN alias_sets.start_time IS 'the first time a value of the set is live';
COMMENT ON COLUMN alias_sets.end_time IS 'the last time a value of the set is live';
COMMENT ON COLUMN alias_sets.idle_start_time IS 'the last touch before the longest stretch in which nothing reads or writes the set; an asynchronous copy touches it at its start alone';
COMMENT ON COLUMN alias_sets.idle_end_time IS 'the first touch after that stretch';
COMMENT ON COLUMN alias_sets.peak_idle_time IS 'how long the stretch without a touch around the peak is; 0 if touched or not live there';
CREATE TABLE residuals (
    module_id BIGINT NOT NULL,
    residual_id INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    layers INTEGER NOT NULL,
    made_instruction_id INTEGER NOT NULL,
    read_instruction_id INTEGER,
    start_time INTEGER NOT NULL,
    end_time INTEGER NOT NULL,
    idle_start_time INTEGER NOT NULL,
    idle_end_time INTEGER NOT NULL,
    peak_idle_time INTEGER NOT NULL
);
COMMENT ON TABLE residuals IS 'A tensor that the forward pass keeps for the backward pass, with all its copies. Key: module_id, residual_id.';
COMMENT ON COLUMN residuals.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN residuals.residual_id IS 'from 0, the largest first';
COMMENT ON COLUMN residuals.value_id IS 'the largest value that holds it';
COMMENT ON COLUMN residuals.layers IS 'the number of layers that it is stacked over; 1 if not stacked';
COMMENT ON COLUMN residuals.made_instruction_id IS 'the instruction that computes it';
COMMENT ON COLUMN residuals.read_instruction_id IS 'the first instruction of the backward that reads it';
COMMENT ON COLUMN residuals.start_time IS 'the first time it is live';
COMMENT ON COLUMN residuals.end_time IS 'the last time it is live';
COMMENT ON COLUMN residuals.idle_start_time IS 'the last touch before its longest stretch without any, as in `alias_sets`';
COMMENT ON COLUMN residuals.idle_end_time IS 'the first touch after that stretch';
COMMENT ON COLUMN residuals.peak_idle_time IS 'as in `alias_sets`';
CREATE TABLE positions (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    position_index INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL,
    shape_index TEXT NOT NULL
);
COMMENT ON TABLE positions IS 'A position of a value: a part of an instruction''s output. Key: module_id, value_id, position_index.';
COMMENT ON COLUMN positions.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN positions.value_id IS 'the value, see `values`';
COMMENT ON COLUMN positions.position_index IS '0 is where the value is defined';
COMMENT ON COLUMN positions.instruction_id IS 'the instruction whose output holds the value';
COMMENT ON COLUMN positions.shape_index IS 'the part of the output, `{}` for the whole';
CREATE TABLE uses (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    use_index INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL,
    operand_number INTEGER NOT NULL,
    operand_shape_index TEXT NOT NULL
);
COMMENT ON TABLE uses IS 'A use of a value. Key: module_id, value_id, use_index.';
COMMENT ON COLUMN uses.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN uses.value_id IS 'the value, see `values`';
COMMENT ON COLUMN uses.use_index IS 'from 0, in XLA''s order';
COMMENT ON COLUMN uses.instruction_id IS 'the instruction that uses the value';
COMMENT ON COLUMN uses.operand_number IS 'the operand''s number, from 0';
COMMENT ON COLUMN uses.operand_shape_index IS 'the part of the operand, `{}` for the whole';
CREATE TABLE live_ranges (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    start_time INTEGER NOT NULL,
    end_time INTEGER NOT NULL
);
COMMENT ON TABLE live_ranges IS 'A value''s live range; thread-local values and some constants have no row. Key: module_id, value_id.';
COMMENT ON COLUMN live_ranges.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN live_ranges.value_id IS 'the value, see `values`';
COMMENT ON COLUMN live_ranges.start_time IS 'the first time the value is live';
COMMENT ON COLUMN live_ranges.end_time IS 'the last time the value is live; schedule_length if live out';
CREATE TABLE _instruction_kinds (
    module_id BIGINT NOT NULL,
    kind_id INTEGER NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    shape TEXT GENERATED ALWAYS AS (coalesce(_short_shape, _long_shape[1])) VIRTUAL,
    _short_shape TEXT,
    _long_shape TEXT[],
    opcode TEXT,
    op_name TEXT,
    source_file TEXT,
    source_line INTEGER,
    stack_frame_id INTEGER,
    scope_id INTEGER,
    pass ENUM('argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'),
    custom_call_target TEXT,
    scoped_bytes BIGINT,
    is_root BOOLEAN,
    parameter_number INTEGER,
    tuple_index INTEGER,
    fusion_kind TEXT,
    attributes TEXT,
    source_frame_id INTEGER,
    library_file TEXT,
    library_line INTEGER,
    scoped_space INTEGER,
    used_scoped_bytes BIGINT,
    flops BIGINT
);
COMMENT ON TABLE _instruction_kinds IS 'What instructions have in common, as a file stores `instructions`.';
COMMENT ON COLUMN _instruction_kinds.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN _instruction_kinds.kind_id IS 'from 0, in the order of the first instruction of each';
COMMENT ON COLUMN _instruction_kinds.before IS 'the names up to their number';
COMMENT ON COLUMN _instruction_kinds.after IS 'the names after their number';
COMMENT ON COLUMN _instruction_kinds.shape IS 'as in `instructions`';
COMMENT ON COLUMN _instruction_kinds._short_shape IS '`shape` where it is up to 4096 bytes';
COMMENT ON COLUMN _instruction_kinds._long_shape IS '`shape` where it is longer, as a list of one text';
CREATE TABLE _instructions (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    computation TEXT,
    schedule_time INTEGER,
    kind_id INTEGER NOT NULL,
    number INTEGER
);
COMMENT ON TABLE _instructions IS 'What each instruction has for itself, as a file stores `instructions`.';
COMMENT ON COLUMN _instructions.kind_id IS 'the rest, see `_instruction_kinds`';
COMMENT ON COLUMN _instructions.number IS 'the number in the name; null if the kind has the whole name';
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
COMMENT ON TABLE kernel_parts IS 'What a Pallas kernel for TPU keeps on chip, from the module in its backend_config. Key: module_id, instruction_id, part.';
COMMENT ON COLUMN kernel_parts.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN kernel_parts.instruction_id IS 'the kernel, see `instructions`';
COMMENT ON COLUMN kernel_parts.part IS 'from 0, in the order of the kernel''s arguments';
COMMENT ON COLUMN kernel_parts.kind IS 'input or output: a block, held in VMEM while the kernel works on it; scratch; allocation, in the kernel''s body; prefetched; semaphore';
COMMENT ON COLUMN kernel_parts.space IS 'the memory space by name: vmem, smem, or sflag of semaphores; null of an array that stays where XLA has it';
COMMENT ON COLUMN kernel_parts.shape IS 'the shape, of VMEM with the tiles that pad it';
COMMENT ON COLUMN kernel_parts.buffers IS '2 of a pipelined block; 0 of a block of an array that is in VMEM as a whole, and of scratch that each step writes before it reads it, which the compiler keeps in registers';
COMMENT ON COLUMN kernel_parts.size_bytes IS 'all its buffers with padding; null outside of VMEM and SMEM';
CREATE TABLE scopes (
    module_id BIGINT NOT NULL,
    scope_id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    operation TEXT NOT NULL,
    module_path TEXT,
    fold TEXT
);
COMMENT ON TABLE scopes IS 'A scope of the program and an operation in it: what op_names say, stored once; a row for each operation of a scope. Key: module_id, scope_id.';
COMMENT ON COLUMN scopes.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN scopes.scope_id IS 'from 0';
COMMENT ON COLUMN scopes.scope IS 'the op_name''s path without transformations, wrappers and loops';
COMMENT ON COLUMN scopes.operation IS 'the op_name''s last component, for example dot_general';
COMMENT ON COLUMN scopes.module_path IS 'the modules of scope, without operations such as jit(silu) and einsums; scope itself where it has no modules; null if memhouse before schema version 4 stored the module';
COMMENT ON COLUMN scopes.fold IS 'module_path with {} for the number of a repeated layer, for example net/block_{}/mlp: the same for all of its repetitions';
CREATE TABLE operands (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    operand_number INTEGER NOT NULL,
    operand_instruction_id INTEGER NOT NULL
);
COMMENT ON TABLE operands IS 'An operand of an instruction, from HLO text. Key: module_id, instruction_id, operand_number.';
COMMENT ON COLUMN operands.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN operands.instruction_id IS 'the instruction, see `instructions`';
COMMENT ON COLUMN operands.operand_number IS 'from 0';
COMMENT ON COLUMN operands.operand_instruction_id IS 'the instruction that computes the operand';
CREATE TABLE control_dependencies (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    predecessor_instruction_id INTEGER NOT NULL
);
COMMENT ON TABLE control_dependencies IS 'An order between two instructions of a computation that no operand asks for: control-predecessors in HLO text. Key: module_id, instruction_id, predecessor_instruction_id.';
COMMENT ON COLUMN control_dependencies.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN control_dependencies.instruction_id IS 'the instruction, see `instructions`';
COMMENT ON COLUMN control_dependencies.predecessor_instruction_id IS 'the instruction that must run before it';
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
COMMENT ON TABLE passes IS 'A text of the program between two passes of the compiler, which XLA dumps with --xla_dump_hlo_pass_re. Key: module_id, step.';
COMMENT ON COLUMN passes.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN passes.step IS 'XLA''s number of the text; the final text is one more';
COMMENT ON COLUMN passes.pipeline IS 'the pipeline of passes; null of the final text';
COMMENT ON COLUMN passes.compiler_pass IS 'the pass that the text was written after; pipeline-start before the first of a pipeline; null where the text''s name does not say it, and of the final text';
COMMENT ON COLUMN passes.instructions IS 'how many there are, those in fusions included';
COMMENT ON COLUMN passes.estimated_peak_bytes IS 'an estimate: the most bytes of values in the main memory at one time, were the program to run in the text''s order';
COMMENT ON COLUMN passes.digest IS 'a hash of opcodes, shapes and operands, without names, and of the order where it is XLA''s schedule';
COMMENT ON COLUMN passes.changes IS 'the opcodes whose counts changed since the text before, with the changes';
COMMENT ON COLUMN passes.text_bytes IS 'the text''s size';
CREATE TABLE buffer_passes (
    module_id BIGINT NOT NULL,
    value_id INTEGER NOT NULL,
    event_number INTEGER NOT NULL,
    event ENUM('program', 'appeared', 'fused', 'copied', 'rematerialised', 'asynchronous', 'layout', 'type', 'replaced') NOT NULL,
    step INTEGER NOT NULL,
    instruction TEXT NOT NULL,
    before TEXT,
    is_certain BOOLEAN NOT NULL
);
COMMENT ON TABLE buffer_passes IS 'What the compiler''s passes did to the instruction that makes a large buffer of the peak. Key: module_id, value_id, event_number.';
COMMENT ON COLUMN buffer_passes.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN buffer_passes.value_id IS 'the value that is live at the peak, see `values`';
COMMENT ON COLUMN buffer_passes.event_number IS 'from 0, the first';
COMMENT ON COLUMN buffer_passes.event IS 'program: the instruction was there before all passes; appeared; fused; copied; rematerialised; asynchronous: it became one; layout; type; replaced: another instruction took its place';
COMMENT ON COLUMN buffer_passes.step IS 'the text in which it is so first, see `passes`';
COMMENT ON COLUMN buffer_passes.instruction IS 'the name of the instruction from this text on';
COMMENT ON COLUMN buffer_passes.before IS 'its name in the text before; null if it was not there';
COMMENT ON COLUMN buffer_passes.is_certain IS 'names or all that is said of the instruction tell it';
CREATE TABLE computations (
    module_id BIGINT NOT NULL,
    computation TEXT NOT NULL,
    is_entry BOOLEAN NOT NULL,
    executions BIGINT
);
COMMENT ON TABLE computations IS 'An HLO computation, from HLO text. Key: module_id, computation.';
COMMENT ON COLUMN computations.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN computations.computation IS 'the name, without %';
COMMENT ON COLUMN computations.is_entry IS 'the program starts here';
COMMENT ON COLUMN computations.executions IS 'how often it runs in one execution of the program: loops multiply, a loop of unknown trip count counts once (trip_count of its body in `calls` is null, `modules`.unknown_loops counts such loops), and of a conditional all branches count';
CREATE TABLE calls (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    attribute TEXT NOT NULL,
    computation TEXT NOT NULL,
    trip_count BIGINT
);
COMMENT ON TABLE calls IS 'A computation that an instruction calls, from HLO text. No key: an instruction may call one twice.';
COMMENT ON COLUMN calls.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN calls.instruction_id IS 'the calling instruction';
COMMENT ON COLUMN calls.attribute IS 'the attribute that names the computation, for example body';
COMMENT ON COLUMN calls.computation IS 'the called computation, see `computations`';
COMMENT ON COLUMN calls.trip_count IS 'how often a loop calls it: what XLA says, else by its counter; null of other calls, and where it is not known';
CREATE TABLE stack_frames (
    module_id BIGINT NOT NULL,
    stack_frame_id INTEGER NOT NULL,
    parent_frame_id INTEGER,
    file TEXT,
    function TEXT,
    line INTEGER,
    end_line INTEGER,
    column_start INTEGER,
    column_end INTEGER
);
COMMENT ON TABLE stack_frames IS 'A Python frame, from HLO text. Key: module_id, stack_frame_id.';
COMMENT ON COLUMN stack_frames.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN stack_frames.stack_frame_id IS 'XLA''s number of the frame';
COMMENT ON COLUMN stack_frames.parent_frame_id IS 'the calling frame; null at the root';
COMMENT ON COLUMN stack_frames.file IS 'the Python file';
COMMENT ON COLUMN stack_frames.function IS 'the Python function';
COMMENT ON COLUMN stack_frames.line IS 'the line, from 1';
COMMENT ON COLUMN stack_frames.end_line IS 'the line where the call ends';
COMMENT ON COLUMN stack_frames.column_start IS 'the column, from 1';
COMMENT ON COLUMN stack_frames.column_end IS 'the column where the call ends';
CREATE TABLE compiler_flags (
    flags_id BIGINT NOT NULL,
    flag TEXT NOT NULL,
    value TEXT NOT NULL
);
COMMENT ON TABLE compiler_flags IS 'A flag of a set of compiler flags. Key: flags_id, flag.';
COMMENT ON COLUMN compiler_flags.flags_id IS 'hash of the flag set, see `dumps`';
COMMENT ON COLUMN compiler_flags.flag IS 'the flag''s name; flags of dumps, caches and toolchain folders are left out, because they do not change the program';
COMMENT ON COLUMN compiler_flags.value IS 'the flag''s value; of a file''s path only the file''s name';
CREATE TABLE reported_peak (
    module_id BIGINT NOT NULL,
    rank INTEGER NOT NULL,
    instruction TEXT NOT NULL,
    shape_index TEXT,
    size_bytes BIGINT NOT NULL
);
COMMENT ON TABLE reported_peak IS 'A row of XLA''s own list of the values live at its peak; where origin is derived, the list is worked out as XLA does. Key: module_id, rank.';
COMMENT ON COLUMN reported_peak.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN reported_peak.rank IS 'from 0, in XLA''s order';
COMMENT ON COLUMN reported_peak.instruction IS 'the defining instruction''s name';
COMMENT ON COLUMN reported_peak.shape_index IS 'the part of the instruction''s shape; null if not printed';
COMMENT ON COLUMN reported_peak.size_bytes IS 'the logical size, as XLA reports it';
CREATE TABLE occupancy (
    module_id BIGINT NOT NULL,
    memory_space INTEGER NOT NULL,
    start_time INTEGER NOT NULL,
    live_bytes BIGINT GENERATED ALWAYS AS (CAST(_live_bytes AS BIGINT)) VIRTUAL,
    _live_bytes DOUBLE PRECISION NOT NULL,
    occupied_bytes BIGINT GENERATED ALWAYS AS (CAST(_occupied_bytes AS BIGINT)) VIRTUAL,
    _occupied_bytes DOUBLE PRECISION NOT NULL,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other')
);
COMMENT ON TABLE occupancy IS 'How full a memory space is, from one change to the next. Key: module_id, memory_space, start_time.';
COMMENT ON COLUMN occupancy.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN occupancy.memory_space IS 'the memory space';
COMMENT ON COLUMN occupancy.start_time IS 'the row is valid from here to the next row''s start_time';
COMMENT ON COLUMN occupancy.live_bytes IS 'sum of the live values'' sizes; aliased ones count twice';
COMMENT ON COLUMN occupancy._live_bytes IS '`live_bytes` as it is stored';
COMMENT ON COLUMN occupancy.occupied_bytes IS 'union of the live values'' addresses';
COMMENT ON COLUMN occupancy._occupied_bytes IS '`occupied_bytes` as it is stored';
COMMENT ON COLUMN occupancy.space IS 'the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; vmem, smem, sflag, cmem or other';
CREATE TABLE module_memory (
    module_id BIGINT NOT NULL,
    memory_space INTEGER NOT NULL,
    total_bytes BIGINT,
    argument_bytes BIGINT,
    output_bytes BIGINT,
    alias_bytes BIGINT,
    constant_bytes BIGINT,
    thread_local_bytes BIGINT,
    temp_bytes BIGINT,
    peak_bytes BIGINT,
    peak_time INTEGER,
    peak_live_bytes BIGINT,
    peak_instruction_id INTEGER,
    fragmentation_bytes BIGINT,
    fragmentation DOUBLE PRECISION,
    live_bound_bytes BIGINT,
    packing_bytes BIGINT,
    padding_bytes BIGINT,
    peak_high_bytes BIGINT,
    space ENUM('hbm', 'host', 'vmem', 'smem', 'sflag', 'cmem', 'other'),
    order_bytes BIGINT,
    order_bound_bytes BIGINT
);
COMMENT ON TABLE module_memory IS 'A module''s memory in one space; `trends` reads this table. Key: module_id, memory_space.';
COMMENT ON COLUMN module_memory.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN module_memory.memory_space IS 'the memory space';
COMMENT ON COLUMN module_memory.total_bytes IS 'the sum of the space''s allocations';
COMMENT ON COLUMN module_memory.argument_bytes IS 'the part of total_bytes in parameters';
COMMENT ON COLUMN module_memory.output_bytes IS 'the part of total_bytes that is maybe live out';
COMMENT ON COLUMN module_memory.alias_bytes IS 'the part of total_bytes in maybe live out parameters';
COMMENT ON COLUMN module_memory.constant_bytes IS 'the part of total_bytes in constants';
COMMENT ON COLUMN module_memory.thread_local_bytes IS 'the part of total_bytes that is thread-local';
COMMENT ON COLUMN module_memory.temp_bytes IS 'the part of total_bytes in preallocated temps';
COMMENT ON COLUMN module_memory.peak_bytes IS 'the largest occupied_bytes; null without live ranges';
COMMENT ON COLUMN module_memory.peak_time IS 'the first time of peak_bytes';
COMMENT ON COLUMN module_memory.peak_live_bytes IS 'live_bytes at peak_time';
COMMENT ON COLUMN module_memory.peak_instruction_id IS 'the instruction at peak_time';
COMMENT ON COLUMN module_memory.fragmentation_bytes IS 'bytes that packing wastes: total_bytes - thread_local_bytes - peak_bytes';
COMMENT ON COLUMN module_memory.fragmentation IS 'fragmentation_bytes / temp_bytes';
COMMENT ON COLUMN module_memory.live_bound_bytes IS 'of the preallocated temps: the most that is live at one time, a bound for any packing';
COMMENT ON COLUMN module_memory.packing_bytes IS 'temp_bytes - live_bound_bytes: packing''s share';
COMMENT ON COLUMN module_memory.padding_bytes IS 'size - logical size of the values live at the peak, an aliased extent counted once';
COMMENT ON COLUMN module_memory.peak_high_bytes IS 'of HLO text without a schedule: the peak in the worse of two orders, where peak_bytes is that in the better one, which the rows of the module show; null of scheduled programs';
COMMENT ON COLUMN module_memory.space IS 'the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; vmem, smem, sflag, cmem or other';
COMMENT ON COLUMN module_memory.order_bytes IS 'how much less the temps would hold in the best other order of the same instructions that was found; null unless ingested with --orders, of estimates, without temps, and of more than 20000 instructions';
COMMENT ON COLUMN module_memory.order_bound_bytes IS 'in no order of the same instructions the temps hold less; null as order_bytes, and where XLA alone knows what shares memory';
CREATE TABLE traits (
    module_id BIGINT NOT NULL,
    trait TEXT NOT NULL,
    name TEXT NOT NULL,
    amount BIGINT NOT NULL
);
COMMENT ON TABLE traits IS 'What the cause of a change is told from: facts of a module, worked out at ingest. Key: module_id, trait, name.';
COMMENT ON COLUMN traits.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN traits.trait IS 'what is described, for example saved or collective';
COMMENT ON COLUMN traits.name IS 'of which: a source line, an opcode; empty if there is one only';
COMMENT ON COLUMN traits.amount IS 'bytes or a count, as the trait says';
CREATE TABLE peak_parts (
    module_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    category ENUM('argument', 'output', 'constant', 'other', 'temp') NOT NULL,
    role ENUM('weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation', 'gradient', 'output', 'constant', 'workspace'),
    pass ENUM('argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'),
    owner TEXT,
    operation TEXT,
    shape TEXT,
    source TEXT,
    buffers INTEGER NOT NULL,
    counted_bytes BIGINT NOT NULL
);
COMMENT ON TABLE peak_parts IS 'What the main memory holds at its peak, in groups that another program has as well. Key: module_id, part.';
COMMENT ON COLUMN peak_parts.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN peak_parts.part IS 'from 0, the largest first';
COMMENT ON COLUMN peak_parts.category IS 'argument, output, constant, other or temp, as in `buffers`';
COMMENT ON COLUMN peak_parts.role IS 'as in `values`; null, as all below, where small parts are summed';
COMMENT ON COLUMN peak_parts.pass IS 'as in `values`';
COMMENT ON COLUMN peak_parts.owner IS 'the argument''s name, else the scope, with # for numbers: layer_# for layer_0 and layer_1';
COMMENT ON COLUMN peak_parts.operation IS 'the framework''s operation, else the opcode';
COMMENT ON COLUMN peak_parts.shape IS 'the shape without layout; null of a tuple''s index table';
COMMENT ON COLUMN peak_parts.source IS 'the file and line of the user''s code, such as zoo.py:40';
COMMENT ON COLUMN peak_parts.buffers IS 'how many buffers these are';
COMMENT ON COLUMN peak_parts.counted_bytes IS 'what they count for; all parts add up to the peak';
CREATE TABLE lineages (
    run_id TEXT NOT NULL,
    branch TEXT NOT NULL,
    suite TEXT NOT NULL,
    run_number INTEGER NOT NULL,
    previous_run_id TEXT
);
COMMENT ON TABLE lineages IS 'Which run follows which: runs of one branch and suite. Recomputed after every change of runs. Key: run_id.';
COMMENT ON COLUMN lineages.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN lineages.branch IS 'the label branch; empty without one';
COMMENT ON COLUMN lineages.suite IS 'the label suite; empty without one';
COMMENT ON COLUMN lineages.run_number IS 'the run''s place among the runs of branch and suite, from 1';
COMMENT ON COLUMN lineages.previous_run_id IS 'the run before it, of the same branch and suite';
CREATE TABLE history (
    dump_id BIGINT NOT NULL,
    series_id BIGINT NOT NULL,
    series_number INTEGER NOT NULL,
    chain_index INTEGER NOT NULL,
    previous_dump_id BIGINT,
    compared_dump_id BIGINT,
    level_index INTEGER,
    matched_by ENUM('only', 'program', 'signature', 'skeleton', 'order', 'workload renamed', 'module renamed', 'renamed'),
    missed_runs INTEGER,
    is_new BOOLEAN NOT NULL,
    is_last BOOLEAN NOT NULL,
    cause TEXT
);
COMMENT ON TABLE history IS 'Which dump follows which from run to run. Recomputed after every change of runs. Key: dump_id.';
COMMENT ON COLUMN history.dump_id IS 'the dump, see `dumps`';
COMMENT ON COLUMN history.series_id IS 'the dump''s chain, with one dump a run';
COMMENT ON COLUMN history.series_number IS '1 for the first chain born in its branch, suite, workload, name and platform; it never shifts';
COMMENT ON COLUMN history.chain_index IS 'the dump''s place in its chain, from 1';
COMMENT ON COLUMN history.previous_dump_id IS 'the previous dump in the chain';
COMMENT ON COLUMN history.compared_dump_id IS 'the last previous dump with figures of the same origin; null if this dump has none';
COMMENT ON COLUMN history.level_index IS 'the chain_index since which the program is unchanged';
COMMENT ON COLUMN history.matched_by IS 'how the previous dump was found: only, program, signature, skeleton, order, workload renamed, module renamed or renamed; null for a chain''s first dump';
COMMENT ON COLUMN history.missed_runs IS 'the number of runs between this dump and previous_dump_id';
COMMENT ON COLUMN history.is_new IS 'a chain''s first dump, but not of the first run of its lineage';
COMMENT ON COLUMN history.is_last IS 'the dump is the last of its chain';
COMMENT ON COLUMN history.cause IS 'why the dump differs from compared_dump_id; null if it does not, or if that is null';
CREATE TABLE causes (
    dump_id BIGINT NOT NULL,
    rank INTEGER NOT NULL,
    kind TEXT NOT NULL,
    term TEXT NOT NULL,
    change_bytes BIGINT,
    source TEXT,
    role ENUM('weight', 'optimizer state', 'state', 'input', 'gathered weight', 'activation', 'gradient', 'output', 'constant', 'workspace')
);
COMMENT ON TABLE causes IS 'The ledger of a dump''s cause: the change_bytes of a dump add up to the change of its peak against `history`.compared_dump_id. Recomputed with `history`. Key: dump_id, rank.';
COMMENT ON COLUMN causes.dump_id IS 'the dump, see `dumps`';
COMMENT ON COLUMN causes.rank IS 'from 1, in the order in which they are told';
COMMENT ON COLUMN causes.kind IS 'for example compiler, pass, argument, donation, layers, line or remainder';
COMMENT ON COLUMN causes.term IS 'what differs from compared_dump_id, in words';
COMMENT ON COLUMN causes.change_bytes IS 'how the peak of the main memory changes with it; null of what has no bytes of its own, such as a flag, and where a side has no figures';
COMMENT ON COLUMN causes.source IS 'the line of most of these bytes, such as zoo.py:40';
COMMENT ON COLUMN causes.role IS 'the role of most of these bytes, as in `values`';
CREATE TABLE gone (
    run_id TEXT NOT NULL,
    series_id BIGINT NOT NULL,
    last_dump_id BIGINT NOT NULL
);
COMMENT ON TABLE gone IS 'A series that a run lacks and the run before has. Recomputed with `history`. Key: run_id, series_id.';
COMMENT ON COLUMN gone.run_id IS 'the first run without the series, see `runs`';
COMMENT ON COLUMN gone.series_id IS 'the series, see `history`';
COMMENT ON COLUMN gone.last_dump_id IS 'its last dump, in the run before';
CREATE TABLE accepted_changes (
    dump_id BIGINT NOT NULL,
    memory_space INTEGER NOT NULL,
    metric ENUM('peak_bytes', 'total_bytes', 'argument_bytes', 'output_bytes', 'alias_bytes', 'constant_bytes', 'thread_local_bytes', 'temp_bytes', 'fragmentation_bytes', 'padding_bytes', 'live_bound_bytes', 'packing_bytes', 'order_bytes', 'order_bound_bytes') NOT NULL,
    accepted_bytes BIGINT NOT NULL,
    reason TEXT NOT NULL,
    accepted_at TIMESTAMP WITHOUT TIME ZONE NOT NULL
);
COMMENT ON TABLE accepted_changes IS 'A growth accepted by `memhouse check --accept`: the new floor of its series. No key: a growth may be accepted again.';
COMMENT ON COLUMN accepted_changes.dump_id IS 'the dump whose figure was accepted, see `dumps`';
COMMENT ON COLUMN accepted_changes.memory_space IS 'the memory space';
COMMENT ON COLUMN accepted_changes.metric IS 'the metric: peak_bytes, total_bytes, argument_bytes, output_bytes, alias_bytes, constant_bytes, thread_local_bytes, temp_bytes, fragmentation_bytes, padding_bytes, live_bound_bytes, packing_bytes, order_bytes, order_bound_bytes';
COMMENT ON COLUMN accepted_changes.accepted_bytes IS 'the value that was accepted';
COMMENT ON COLUMN accepted_changes.reason IS 'why the change was accepted';
COMMENT ON COLUMN accepted_changes.accepted_at IS 'when it was accepted (UTC)';
CREATE TABLE oom_reports (
    oom_id BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    dump_id BIGINT,
    path TEXT NOT NULL,
    line INTEGER,
    times INTEGER NOT NULL,
    kind ENUM('program', 'scoped', 'allocation', 'runtime') NOT NULL,
    space_name TEXT,
    module_name TEXT,
    capacity_bytes BIGINT,
    used_bytes BIGINT,
    exceeded_bytes BIGINT,
    reserved_bytes BIGINT,
    program_bytes BIGINT,
    argument_bytes BIGINT,
    output_bytes BIGINT,
    alias_bytes BIGINT,
    temp_bytes BIGINT,
    fragmentation_bytes BIGINT,
    requested_bytes BIGINT,
    limit_bytes BIGINT,
    free_bytes BIGINT,
    instruction TEXT,
    shape TEXT,
    tag TEXT,
    op_name TEXT,
    source_file TEXT,
    source_line INTEGER,
    is_rounded BOOLEAN NOT NULL,
    is_cut BOOLEAN NOT NULL,
    message TEXT NOT NULL
);
COMMENT ON TABLE oom_reports IS 'A message of XLA that memory ran out, from a log or a dump''s folder. Key: oom_id.';
COMMENT ON COLUMN oom_reports.oom_id IS 'hash of run, file and line of the message';
COMMENT ON COLUMN oom_reports.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN oom_reports.dump_id IS 'the dump of the module that did not fit, see `dumps`; null if the run has none, or nothing says which of several it is';
COMMENT ON COLUMN oom_reports.path IS 'the file that holds the message, relative to the ingested path';
COMMENT ON COLUMN oom_reports.line IS 'the message''s first line, from 1';
COMMENT ON COLUMN oom_reports.times IS 'how often the file holds the message';
COMMENT ON COLUMN oom_reports.kind IS 'program: the whole program is over the memory; scoped: a kernel is over its scoped limit; allocation: one block is over the memory; runtime: no room when the program ran';
COMMENT ON COLUMN oom_reports.space_name IS 'the memory: hbm, vmem, smem and so on; gpu of a GPU';
COMMENT ON COLUMN oom_reports.module_name IS 'the module''s name; null if the message does not say it';
COMMENT ON COLUMN oom_reports.capacity_bytes IS 'the memory that programs may use, as the message says';
COMMENT ON COLUMN oom_reports.used_bytes IS 'what the program needs: temporaries, arguments, outputs';
COMMENT ON COLUMN oom_reports.exceeded_bytes IS 'how far the need is over the capacity or limit';
COMMENT ON COLUMN oom_reports.reserved_bytes IS 'what is reserved beside the program';
COMMENT ON COLUMN oom_reports.program_bytes IS 'what the program needs beside its arguments';
COMMENT ON COLUMN oom_reports.argument_bytes IS 'the part in arguments';
COMMENT ON COLUMN oom_reports.output_bytes IS 'the part in outputs';
COMMENT ON COLUMN oom_reports.alias_bytes IS 'the part of output_bytes in memory of arguments';
COMMENT ON COLUMN oom_reports.temp_bytes IS 'the part in temporaries';
COMMENT ON COLUMN oom_reports.fragmentation_bytes IS 'the part of temp_bytes that packing wastes';
COMMENT ON COLUMN oom_reports.requested_bytes IS 'the size of the allocation that failed';
COMMENT ON COLUMN oom_reports.limit_bytes IS 'the kernel''s limit of scoped memory';
COMMENT ON COLUMN oom_reports.free_bytes IS 'what was free when the program ran';
COMMENT ON COLUMN oom_reports.instruction IS 'the kernel, or the instruction of the allocation';
COMMENT ON COLUMN oom_reports.shape IS 'the shape of the instruction or of the allocation';
COMMENT ON COLUMN oom_reports.tag IS 'what the allocation is for, as XLA says, for example scratch operand';
COMMENT ON COLUMN oom_reports.op_name IS 'the framework''s name for the instruction';
COMMENT ON COLUMN oom_reports.source_file IS 'the instruction''s file in Python';
COMMENT ON COLUMN oom_reports.source_line IS 'the instruction''s line in Python';
COMMENT ON COLUMN oom_reports.is_rounded IS 'XLA printed the sizes rounded, to 3 to 5 digits';
COMMENT ON COLUMN oom_reports.is_cut IS 'parts of the message are missing';
COMMENT ON COLUMN oom_reports.message IS 'the message''s first line, at most 500 characters';
CREATE TABLE oom_buffers (
    oom_id BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    rank INTEGER NOT NULL,
    size_bytes BIGINT NOT NULL,
    is_rounded BOOLEAN NOT NULL,
    unpadded_bytes BIGINT,
    padding_bytes BIGINT,
    shape TEXT,
    element_type TEXT,
    instruction TEXT,
    opcode TEXT,
    op_name TEXT,
    source_file TEXT,
    source_line INTEGER,
    stack_frame_id INTEGER,
    allocation_type TEXT
);
COMMENT ON TABLE oom_buffers IS 'A buffer that a message of XLA lists among the largest. Key: oom_id, rank.';
COMMENT ON COLUMN oom_buffers.oom_id IS 'the message, see `oom_reports`';
COMMENT ON COLUMN oom_buffers.run_id IS 'the run, see `runs`';
COMMENT ON COLUMN oom_buffers.rank IS 'XLA''s number of the buffer, from 1, the largest first';
COMMENT ON COLUMN oom_buffers.size_bytes IS 'the size, with padding';
COMMENT ON COLUMN oom_buffers.is_rounded IS 'size_bytes is XLA''s rounded figure; otherwise it is exact, from the shape';
COMMENT ON COLUMN oom_buffers.unpadded_bytes IS 'elements x element size';
COMMENT ON COLUMN oom_buffers.padding_bytes IS 'what tiles add; null if the message does not say';
COMMENT ON COLUMN oom_buffers.shape IS 'the shape with layout; null if it is cut';
COMMENT ON COLUMN oom_buffers.element_type IS 'for example bf16';
COMMENT ON COLUMN oom_buffers.instruction IS 'the instruction that defines the buffer';
COMMENT ON COLUMN oom_buffers.opcode IS 'the instruction''s opcode';
COMMENT ON COLUMN oom_buffers.op_name IS 'the framework''s name for the instruction';
COMMENT ON COLUMN oom_buffers.source_file IS 'the instruction''s file in Python';
COMMENT ON COLUMN oom_buffers.source_line IS 'the instruction''s line in Python';
COMMENT ON COLUMN oom_buffers.stack_frame_id IS 'the Python stack, which only the dump can look up';
COMMENT ON COLUMN oom_buffers.allocation_type IS 'for example HLO temp; argument for an argument';
CREATE TABLE schema_version (
    version INTEGER NOT NULL,
    layout TEXT
);
COMMENT ON TABLE schema_version IS 'The schema''s version.';
COMMENT ON COLUMN schema_version.version IS 'the number of the newest applied upgrade';
COMMENT ON COLUMN schema_version.layout IS 'the digest of the tables'' names, columns and types';
CREATE TABLE view_set (
    digest TEXT NOT NULL
);
COMMENT ON TABLE view_set IS 'The stored set of canned views; another memhouse version replaces it.';
COMMENT ON COLUMN view_set.digest IS 'SHA-256 of the canned views'' SQL';
CREATE VIEW instructions AS
SELECT
    own.module_id,
    own.instruction_id,
    concat(kind.before, own.number, kind.after) AS instruction,
    own.computation,
    own.schedule_time,
    kind.opcode,
    kind.shape,
    kind.op_name,
    kind.source_file,
    kind.source_line,
    kind.stack_frame_id,
    kind.scope_id,
    kind.pass,
    kind.custom_call_target,
    kind.scoped_bytes,
    kind.is_root,
    kind.parameter_number,
    kind.tuple_index,
    kind.fusion_kind,
    kind.attributes,
    kind.source_frame_id,
    kind.library_file,
    kind.library_line,
    kind.scoped_space,
    kind.used_scoped_bytes,
    kind.flops
FROM _instructions AS own
INNER JOIN _instruction_kinds AS kind
    ON own.module_id = kind.module_id AND own.kind_id = kind.kind_id;
COMMENT ON VIEW instructions IS 'An instruction named anywhere in the module. Key: module_id, instruction_id.';
COMMENT ON COLUMN instructions.module_id IS 'the module, see `modules`';
COMMENT ON COLUMN instructions.instruction_id IS 'memhouse''s number of the instruction within the module';
COMMENT ON COLUMN instructions.instruction IS 'the name, without %';
COMMENT ON COLUMN instructions.computation IS 'the instruction''s computation; null without HLO text';
COMMENT ON COLUMN instructions.schedule_time IS 'time in the flattened schedule; null if not scheduled';
COMMENT ON COLUMN instructions.opcode IS 'for example fusion or copy-start';
COMMENT ON COLUMN instructions.shape IS 'the output''s shape with layout';
COMMENT ON COLUMN instructions.op_name IS 'the operation''s name in the framework: a scope path';
COMMENT ON COLUMN instructions.source_file IS 'the file of source_line';
COMMENT ON COLUMN instructions.source_line IS 'the line of the user''s code that created the instruction: the innermost frame that is in no library; null if all are, or if nothing tells';
COMMENT ON COLUMN instructions.stack_frame_id IS 'the innermost Python frame, see `stack_frames`';
COMMENT ON COLUMN instructions.scope_id IS 'the scope and operation, see `scopes`; null if not named';
COMMENT ON COLUMN instructions.pass IS 'the pass that the instruction belongs to: as in `values`';
COMMENT ON COLUMN instructions.custom_call_target IS 'the kernel that a custom-call calls';
COMMENT ON COLUMN instructions.scoped_bytes IS 'memory that is reserved for the kernel, all spaces';
COMMENT ON COLUMN instructions.is_root IS 'whether it gives its computation''s result; null without HLO text, and if memhouse before schema version 3 stored the module: ingest the dump again';
COMMENT ON COLUMN instructions.parameter_number IS 'which operand of the caller a parameter is, from 0';
COMMENT ON COLUMN instructions.tuple_index IS 'which element a get-tuple-element takes, from 0';
COMMENT ON COLUMN instructions.fusion_kind IS 'for example kLoop';
COMMENT ON COLUMN instructions.attributes IS 'what it does to dimensions, as XLA prints it: lhs_contracting_dims={1}, rhs_contracting_dims={0}; null if nothing';
COMMENT ON COLUMN instructions.source_frame_id IS 'the Python frame of source_line, see `stack_frames`';
COMMENT ON COLUMN instructions.library_file IS 'the file of library_line';
COMMENT ON COLUMN instructions.library_line IS 'the innermost line that created the instruction, if it is a library''s; null if it is source_line';
COMMENT ON COLUMN instructions.scoped_space IS 'the memory space of scoped_bytes; null if there are several';
COMMENT ON COLUMN instructions.used_scoped_bytes IS 'memory that the compiler says it uses while it runs; null if not said, as in dumps of HLO text before code was generated';
COMMENT ON COLUMN instructions.flops IS 'of a dot or convolution: the FLOPs of one execution, see `computations`.executions; an addition and a multiplication are two';
