"""Every kind of number in a dump: where it stands, and what in the warehouse depends on it."""

from dataclasses import dataclass

ASSIGNMENT = "-buffer-assignment.txt"
VALUES = "-buffer-assignment-values.txt"
LIVES = "-live-range.txt"
HLO = "after_optimizations.txt"
REPORT = "-memory-usage-report.txt"
OPTIONS = ".debug_options"
FLAGS = ".flagfile"
TPU = ".target_arguments.txt"
GPU = ".gpu_target_config.pbtxt"

# What follows from where values lie and when they are live.
OCCUPANCY = (
    "occupancy rows",
    "occupancy.start_time",
    "occupancy.live_bytes",
    "occupancy.occupied_bytes",
    "allocations.peak_bytes",
    "allocations.peak_time",
    "module_memory.peak_bytes",
    "module_memory.peak_time",
    "module_memory.peak_instruction_id",
    "module_memory.peak_live_bytes",
    "module_memory.padding_bytes",
    "module_memory.fragmentation",
    "module_memory.fragmentation_bytes",
    "module_memory.live_bound_bytes",
    "module_memory.packing_bytes",
)
_SPAN = (
    "value_id",
    "start_time",
    "end_time",
    "idle_start_time",
    "idle_end_time",
    "peak_idle_time",
)
# What the cause of a change is told from follows from most of a program.
TRAITS = ("traits rows", "traits.name", "traits.amount")
# What follows from what computes each value, and from what reads it.
ATTRIBUTION = (
    "allocations.value_id",
    "alias_sets rows",
    *(f"alias_sets.{name}" for name in _SPAN),
    "residuals rows",
    *(f"residuals.{name}" for name in ("layers", "made_instruction_id", "read_instruction_id")),
    *(f"residuals.{name}" for name in _SPAN),
    "instructions.pass",
    "instructions.scope_id",
    "scopes rows",
    *TRAITS,
    "values.alias_set",
    "values.last_use_time",
    "values.origin_instruction_id",
    "values.origin_rule",
    "values.pass",
    "values.residual_id",
    "values.role",
    "file_sets.message",
)
FRAME = (
    "stack_frames.file",
    "stack_frames.function",
    "stack_frames.line",
    "stack_frames.end_line",
    "stack_frames.column_start",
    "stack_frames.column_end",
    "instructions.source_file",
    "instructions.source_line",
    "instructions.source_frame_id",
    "instructions.library_file",
    "instructions.library_line",
    *TRAITS,
)


# How often loops run, and so the work of what they contain.
WORK = (
    "calls.trip_count",
    "computations.executions",
    "instructions.flops",
    "modules.flops",
    "modules.unknown_loops",
)


@dataclass(frozen=True)
class Kind:
    """A kind of number: the file that it is in, a pattern whose group is the number.

    `changes` are the columns that may change unless somebody notices. A number that is
    `unread` need not change a thing.
    """

    name: str
    file: str
    pattern: str
    changes: frozenset[str] = frozenset()
    unread: bool = False


def _kind(name: str, file: str, pattern: str, *changes: str) -> Kind:
    return Kind(name, file, pattern, frozenset(changes))


def _unread(name: str, file: str, pattern: str, *changes: str) -> Kind:
    return Kind(name, file, pattern, frozenset(changes), unread=True)


KINDS = (
    _kind(
        "allocation's index",
        ASSIGNMENT,
        r"^allocation (\d+):",
        "allocations.allocation_index",
        "values.allocation_index",
    ),
    _kind("allocation's size", ASSIGNMENT, r"^allocation \d+: size (\d+)"),
    _kind("allocation's color", ASSIGNMENT, r"^allocation .*, color (\d+)"),
    _kind("parameter's number", ASSIGNMENT, r"^allocation .*, parameter (\d+)"),
    _kind("parameter's index", ASSIGNMENT, r"^allocation .* at ShapeIndex \{(\d+)"),
    _kind("parameter's shape", ASSIGNMENT, r"^allocation .*, shape \|\w+\[(\d+)"),
    _kind(
        "output's shape",
        ASSIGNMENT,
        r"^allocation .*output shape is \|\w+\[(\d+)",
        "allocations.shape",
    ),
    _kind("value's id", ASSIGNMENT, r"^ value: <(\d+) "),
    _kind("value's instruction", ASSIGNMENT, r"^ value: <\d+ [^ {>]*?(\d+)[ {]"),
    _kind("value's index", ASSIGNMENT, r"^ value: <\d+ [^ {>]+\{(\d+)"),
    _kind("value's space", ASSIGNMENT, r"^ value: <[^>]* @(\d+)>"),
    _kind(
        "value's size",
        ASSIGNMENT,
        r"^ value: .*\(size=(\d+),",
        "values.size_bytes",
        "values.logical_bytes",
        "alias_sets.value_id",
        "residuals.value_id",
        *TRAITS,
        *OCCUPANCY,
    ),
    _kind(
        "value's offset",
        ASSIGNMENT,
        r"^ value: .*,offset=(\d+)\)",
        "values.offset_bytes",
        *OCCUPANCY,
    ),
    _kind("value's dimension", ASSIGNMENT, r"^ value: .*\): \w+\[(\d+)"),
    _kind("value's layout", ASSIGNMENT, r"^ value: .*\): \w+\[[\d,]*\]\{[\d,]*:T\((\d+)"),
    _kind("total", VALUES, r"^Total bytes used: (\d+)"),
    _kind("used value's id", VALUES, r"^<(\d+) "),
    _unread("used value's instruction", VALUES, r"^<\d+ [^ {>]*?(\d+)[ {]"),
    _unread("used value's index", VALUES, r"^<\d+ [^ {>]+\{(\d+)"),
    _unread("used value's space", VALUES, r"^<.* @(\d+)>"),
    _kind("position's instruction", VALUES, r"^  [^ ,]*?(\d+)(?: \{[\d,]*\})?$"),
    _kind("position's index", VALUES, r"^  [^ ,]+ \{(\d+)", "positions.shape_index"),
    _kind("use's instruction", VALUES, r"^  [^ ,]*?(\d+), operand"),
    _kind("use's operand", VALUES, r"^  [^ ,]+, operand (\d+)"),
    _kind("use's index", VALUES, r"^  [^ ,]+, operand \d+ \{(\d+)"),
    _unread("repeated definition", VALUES, r"^ from instruction:.*?(\d+)"),
    _kind("schedule's length", LIVES, r"^HloLiveRange \(max (\d+)\)"),
    _kind("schedule's time", LIVES, r"^    (\d+):"),
    _kind("scheduled instruction", LIVES, r"^    \d+:.*?(\d+)$"),
    _kind("life's instruction", LIVES, r"^    [^ {:]*?(\d+)\{[\d,]*\}:\d+-"),
    _kind("life's index", LIVES, r"^    [^ {]+\{(\d+)[\d,]*\}:\d+-"),
    _kind("life's start", LIVES, r"^    [^ {]+\{[\d,]*\}:(\d+)-\d+$"),
    _kind(
        "life's end", LIVES, r"^    [^ {]+\{[\d,]*\}:\d+-(\d+)$", "live_ranges.end_time", *OCCUPANCY
    ),
    # Noticed unless the same is live at the other time.
    _kind("peak's time", LIVES, r"^  Live ranges at (\d+) ", "modules.reported_peak_time"),
    _kind("peak's instruction", LIVES, r"^    [^ {:]*?(\d+)\{[\d,]*\}: \d+ bytes"),
    _kind(
        "peak's bytes",
        LIVES,
        r"^    [^ {]+\{[\d,]*\}: (\d+) bytes",
        "reported_peak.size_bytes",
        "modules.reported_peak_bytes",
    ),
    _unread("peak's sum so far", LIVES, r"\(cumulative: (\d+) bytes\)"),
    _unread("tree of scopes", LIVES, r"^  Stack trace breakdown for peak usage: (\d+)"),
    _kind("instruction's name", HLO, r"^  (?:ROOT )?%?[^ ]*?(\d+) = "),
    _kind(
        "operand's name",
        HLO,
        r"^  .*? = .*? (?!constant|parameter)[a-z][a-z\-]*\(%?[a-z][^ ,()]*?(\d+)[,)]",
        "operands.operand_instruction_id",
        *ATTRIBUTION,
        *WORK,
    ),
    _kind(
        "instruction's dimension", HLO, r"^  .*? = \w+\[(\d+)", "instructions.shape", *TRAITS, *WORK
    ),
    _kind(
        "parameter instruction's number",
        HLO,
        r" parameter\((\d+)\)",
        "instructions.parameter_number",
        "entry_shapes.argument_name",
        "entry_shapes.sharding",
        *ATTRIBUTION,
        *WORK,
    ),
    _kind(
        "argument's sharding",
        HLO,
        r" parameter\(\d+\), sharding=\{devices=\[(\d+)",
        "entry_shapes.sharding",
    ),
    _kind("source line", HLO, r"source_line=(\d+)", "instructions.source_line"),
    _kind(
        "instruction's frame",
        HLO,
        r"stack_frame_id=(\d+)",
        "instructions.stack_frame_id",
        "instructions.source_frame_id",
        "instructions.source_line",
        "instructions.source_file",
    ),
    _kind(
        "tuple's index",
        HLO,
        r" get-tuple-element\(.*\), index=(\d+)",
        "instructions.tuple_index",
        *ATTRIBUTION,
        *WORK,
    ),
    _kind(
        "called computation",
        HLO,
        r"^  .*(?:calls|to_apply|body)=%?[^ ,]*?(\d+)",
        "calls.computation",
        "calls rows",
        *WORK,
    ),
    _kind("computation's name", HLO, r"^%?[^ (]*?(\d+) (?:\(.*\) -> .* )?\{$"),
    _unread("channel", HLO, r"channel_id=(\d+)"),
    _unread("constant", HLO, r" constant\(\{?(\d+)", *WORK),
    _kind("signature's dimension", HLO, r"entry_computation_layout=\{\(\w+\[(\d+)"),
    _kind(
        "result's dimension",
        HLO,
        r"entry_computation_layout=.*\)->\(?\w+\[(\d+)",
        "entry_shapes.shape",
        "entry_shapes.logical_bytes",
        "entry_shapes.padded_bytes",
        "modules.entry_signature",
    ),
    # The note at the text says that the owners of values are not known.
    _kind(
        "alias' output",
        HLO,
        r"input_output_alias=\{ \{(\d+)",
        "modules.input_output_alias",
        *ATTRIBUTION,
        *WORK,
    ),
    _kind(
        "alias' argument",
        HLO,
        r"input_output_alias=\{ \{\d*\}: \((\d+)",
        "modules.input_output_alias",
        *WORK,
    ),
    _kind("donor", HLO, r"buffer_donor=\{ \((\d+)", "modules.buffer_donor"),
    _kind("partitions", HLO, r"num_partitions=(\d+)", "modules.num_partitions"),
    _kind("replicas", HLO, r"replica_count=(\d+)", "modules.replica_count"),
    _kind(
        "reserved memory",
        HLO,
        r'scoped_memory_configs":\[\{.*?"size":"(\d+)"',
        "instructions.scoped_bytes",
    ),
    _kind("name's id", HLO, r'^(\d+) "'),
    _kind("location's id", HLO, r"^(\d+) \{file_name_id"),
    _kind("location's file", HLO, r"\{file_name_id=(\d+)", *FRAME),
    _kind("location's function", HLO, r"function_name_id=(\d+)", *FRAME),
    _kind(
        "location's line",
        HLO,
        r"function_name_id=\d+ line=(\d+)",
        "stack_frames.line",
        "instructions.source_line",
        *TRAITS,
    ),
    _kind("location's last line", HLO, r" end_line=(\d+)", "stack_frames.end_line"),
    _kind("location's column", HLO, r" column=(\d+)", "stack_frames.column_start"),
    _kind("location's last column", HLO, r" end_column=(\d+)", "stack_frames.column_end"),
    _kind("frame's id", HLO, r"^(\d+) \{file_location_id"),
    _kind("frame's location", HLO, r"\{file_location_id=(\d+)", *FRAME),
    _kind("frame's caller", HLO, r"parent_frame_id=(\d+)", "stack_frames.parent_frame_id"),
    _kind("space's number", REPORT, r"\(color=(\d+)\)"),
    _unread("report's figures", REPORT, r"^ +(\d+)"),
    _kind("option", OPTIONS, r"^xla_(?!dump)\w+: (\d+)", "compiler_flags.value"),
    _kind("flag", FLAGS, r"^--xla_(?!dump)\w+=(\d+)", "compiler_flags.value"),
    _kind("chips", TPU, r"x: (\d+)", "dumps.topology"),
    _kind("GPU's memory", GPU, r"device_memory_size: (\d+)", "dumps.device_memory_bytes"),
    _unread("GPU's other figures", GPU, r"(?<!device_memory_size): (\d+)"),
)
