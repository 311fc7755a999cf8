"""Every table of the warehouse, once: columns, types and what they mean.

The comments here are stored in the database and become `docs/data-dictionary.md`.
Sizes and offsets are bytes (BIGINT); times are positions in the module's flattened
schedule, and both ends of a live range are inclusive.

Bulk tables have no PRIMARY KEY on purpose: DuckDB would keep an index over every row,
and the writer inserts a module once or not at all. KEYS names the key of each, and
`memhouse verify` holds it.

The file is long because it is one list: whoever looks for a column finds it here.
"""

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    DateTime,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine

from .arrow import SHORT_TEXT_BYTES
from .metric_names import METRICS as METRICS

metadata = MetaData()


_Type = type[TypeEngine[Any]] | TypeEngine[Any]


def _key(name: str, type_: _Type, comment: str) -> Column[Any]:
    return Column(name, type_, primary_key=True, autoincrement=False, comment=comment)


def _required(name: str, type_: _Type, comment: str) -> Column[Any]:
    return Column(name, type_, nullable=False, comment=comment)


def _optional(name: str, type_: _Type, comment: str) -> Column[Any]:
    return Column(name, type_, comment=comment)


def _shape(comment: str) -> list[Column[Any]]:
    """A shape: the column to read, and the two that store it.

    A few hundred shapes stand in a hundred thousand rows, and one tuple of 30 KB (`large`)
    is enough to keep all of them from DuckDB's dictionary: long ones are stored apart.
    """
    return [
        Column("shape", Text, Computed("coalesce(_short_shape, _long_shape[1])"), comment=comment),
        _optional("_short_shape", Text, f"`shape` where it is up to {SHORT_TEXT_BYTES} bytes"),
        _optional("_long_shape", ARRAY(Text), "`shape` where it is longer, as a list of one"),
    ]


def _module_id() -> Column[Any]:
    return _required("module_id", BigInteger, "the module, see `modules`")


runs = Table(
    "runs",
    metadata,
    _key("run_id", Text, "the user's name for the run"),
    _required("run_at", DateTime(timezone=True), "when the run's programs were compiled (UTC)"),
    _required("ingested_at", DateTime(timezone=True), "when the run was first ingested (UTC)"),
    _required("source", Text, "the path that was ingested, as it was given"),
    _required("tool_version", Text, "the memhouse version that ingested it"),
    comment="One ingested run, for example a night.",
)

run_labels = Table(
    "run_labels",
    metadata,
    _key("run_id", Text, "the run, see `runs`"),
    _key("key", Text, "the label's name, for example branch, commit or jax"),
    _required("value", Text, "the label's value"),
    comment="A label of a run: branch, commit, jax version and the like.",
)

dumps = Table(
    "dumps",
    metadata,
    _key("dump_id", BigInteger, "64-bit hash of run, workload and the dump's file name"),
    _required("run_id", Text, "the run, see `runs`"),
    _required("workload", Text, "the dump's folder relative to the ingested path, `.` if none"),
    _required("module_name", Text, "the HLO module's name"),
    _optional("module_number", Integer, "the module's number within its process (module_NNNN)"),
    _required("occurrence", Integer, "1 for the first module of that name in run and workload"),
    _optional("platform", Text, "cpu, gpu or tpu; null if the file's name does not tell"),
    _optional("target", Text, "the target in the file's name, for example sm_9.0a_gpu"),
    _optional("compiler", Text, "libtpu's changelist in the file's name, for example 933746096"),
    _optional("module_id", BigInteger, "its content, see `modules`; null if nothing was readable"),
    _optional("flags_id", BigInteger, "its flags, see `compiler_flags`; null if none were dumped"),
    _optional("device_kind", Text, "the device compiled for, as its settings name it"),
    _optional("device_memory_bytes", BigInteger, "that device's memory, where it is said"),
    _optional("topology", Text, "how many TPU chips and hosts it was compiled for"),
    _required("status", Text, "ok; partial: a part is missing or unreadable; failed: nothing read"),
    _required("oom", Boolean, "XLA ran out of memory compiling it"),
    comment="A module as dumped in a run. Many dumps may share one module.",
)

dump_files = Table(
    "dump_files",
    metadata,
    _required("dump_id", BigInteger, "the dump, see `dumps`"),
    _required("path", Text, "the file, relative to the ingested path"),
    _required("kind", Text, "what the file holds, for example live-range"),
    _optional("bytes", BigInteger, "its size, uncompressed; null if it could not be read"),
    _optional("sha256", Text, "its SHA-256, uncompressed, in hex"),
    _required(
        "status",
        Text,
        "ok; failed: nothing was taken from it; partial: a part of it; "
        "contradicts: at odds with another file; missing: not there although it should be",
    ),
    _optional("line", Integer, "the line that is wrong, from 1"),
    _optional("message", Text, "what is wrong, and what to do"),
    comment="A file of a dump, with what became of it.",
)

modules = Table(
    "modules",
    metadata,
    _key("module_id", BigInteger, "64-bit hash of the module's name and its files' content"),
    _required("module_name", Text, "the HLO module's name"),
    _optional("schedule_length", Integer, "instructions in the flattened schedule"),
    _optional("reported_total_bytes", BigInteger, "XLA's own `Total bytes used`, all spaces"),
    _optional("reported_peak_time", Integer, "the time of XLA's own, estimated peak"),
    _optional(
        "reported_peak_bytes",
        BigInteger,
        "XLA's own peak: logical sizes without padding, all memory spaces added together",
    ),
    _optional("entry_signature", Text, "parameter and result shapes: entry_computation_layout"),
    _optional("input_output_alias", Text, "which results reuse which arguments, as XLA prints it"),
    _optional("is_scheduled", Boolean, "the HLO text's order is XLA's schedule"),
    _optional("num_partitions", Integer, "SPMD partitions the module was compiled for"),
    _optional("replica_count", Integer, "replicas the module was compiled for"),
    comment="A module's content, stored once however many nights dumped it.",
)

entry_shapes = Table(
    "entry_shapes",
    metadata,
    _module_id(),
    _required("is_output", Boolean, "part of the result; else of an argument"),
    _optional("parameter_number", Integer, "which argument; null for the result"),
    _required("shape_index", Text, "which part of the argument or result, `{}` for all of it"),
    _required("shape", Text, "its shape with layout"),
    _optional("element_type", Text, "for example bf16"),
    _optional("logical_bytes", BigInteger, "elements x element size; null if unbounded"),
    _optional("padded_bytes", BigInteger, "with the padding of its tiles; null if unbounded"),
    comment="An array of the entry computation's arguments and result.",
)

memory_spaces = Table(
    "memory_spaces",
    metadata,
    _module_id(),
    _required("memory_space", Integer, "XLA's number (color): 0 is the main memory, HBM"),
    _optional("space_name", Text, "its name in the memory usage report; null if none names it"),
    comment="A memory space of a module.",
)

allocations = Table(
    "allocations",
    metadata,
    _module_id(),
    _required("allocation_index", Integer, "XLA's number of the allocation"),
    _required("memory_space", Integer, "the memory space it is in"),
    _required("size_bytes", BigInteger, "its size"),
    _required("is_parameter", Boolean, "it holds an argument of the entry computation"),
    _optional("parameter_number", Integer, "which argument"),
    _optional("parameter_shape_index", Text, "which part of that argument, `{}` for all of it"),
    _required("is_output", Boolean, "it holds the entry computation's result"),
    _required("is_constant", Boolean, "it holds a constant"),
    _required("is_thread_local", Boolean, "it belongs to a computation within one instruction"),
    _required("maybe_live_out", Boolean, "it may hold a result after the program has ended"),
    _required("is_temp", Boolean, "it is the preallocated temp, shared by values over time"),
    _optional("shape", Text, "shape of the argument or result in it, without layout"),
    _optional("peak_bytes", BigInteger, "of a temp: the most of it occupied at one time"),
    _optional("peak_time", Integer, "of a temp: the first time it is fullest"),
    _optional("address", BigInteger, "its address in the compiler's process (some old dumps)"),
    comment="A buffer allocation.",
)

values = Table(
    "values",
    metadata,
    _module_id(),
    _required("value_id", Integer, "XLA's number of the value"),
    _required("instruction_id", Integer, "the instruction that defines it"),
    _required("shape_index", Text, "which part of that instruction's shape, `{}` for all of it"),
    _required("is_phi", Boolean, "merges values of a loop or conditional"),
    _required("memory_space", Integer, "the memory space it is in"),
    _optional("allocation_index", Integer, "the allocation it is in, see `allocations`"),
    _optional("offset_bytes", BigInteger, "where in the allocation it starts"),
    _optional("size_bytes", BigInteger, "what it occupies, tiled and padded"),
    _optional("logical_bytes", BigInteger, "elements x element size; a tuple's index table"),
    *_shape("its shape with layout"),
    _optional("element_type", Text, "for example bf16; null for a tuple"),
    comment="An HLO value: one tensor, from definition to last use.",
)

positions = Table(
    "positions",
    metadata,
    _module_id(),
    _required("value_id", Integer, "the value, see `values`"),
    _required("position_index", Integer, "0 is where the value is defined"),
    _required("instruction_id", Integer, "the instruction at whose output it stands"),
    _required("shape_index", Text, "where in that output, `{}` for all of it"),
    comment="A place where a value stands.",
)

uses = Table(
    "uses",
    metadata,
    _module_id(),
    _required("value_id", Integer, "the value, see `values`"),
    _required("use_index", Integer, "from 0, in XLA's order"),
    _required("instruction_id", Integer, "the instruction that uses it"),
    _required("operand_number", Integer, "as which operand, from 0"),
    _required("operand_shape_index", Text, "which part of the operand, `{}` for all of it"),
    comment="A use of a value.",
)

live_ranges = Table(
    "live_ranges",
    metadata,
    _module_id(),
    _required("value_id", Integer, "the value, see `values`"),
    _required("start_time", Integer, "first time it is live"),
    _required("end_time", Integer, "last time it is live; schedule_length if it lives out"),
    comment="A value's life; thread-local values and some constants have none.",
)

instructions = Table(
    "instructions",
    metadata,
    _module_id(),
    _required("instruction_id", Integer, "our number of the instruction within the module"),
    _required("instruction", Text, "its name, without %; stored here and nowhere else"),
    _optional("computation", Text, "the computation it is in; null without HLO text"),
    _optional("schedule_time", Integer, "its time in the flattened schedule; null if not in it"),
    _optional("opcode", Text, "for example fusion or copy-start"),
    *_shape("its output's shape with layout"),
    _optional("op_name", Text, "the framework's name of the operation, a scope path"),
    _optional("source_file", Text, "the file of the line that made it"),
    _optional("source_line", Integer, "the line that made it"),
    _optional("stack_frame_id", Integer, "its innermost Python frame"),
    _optional("custom_call_target", Text, "the kernel a custom-call calls"),
    _optional("scoped_bytes", BigInteger, "memory its kernel reserves for itself, all spaces"),
    comment="An instruction named anywhere in the module.",
)

operands = Table(
    "operands",
    metadata,
    _module_id(),
    _required("instruction_id", Integer, "the instruction, see `instructions`"),
    _required("operand_number", Integer, "from 0"),
    _required("operand_instruction_id", Integer, "the instruction that computes the operand"),
    comment="An operand of an instruction, from HLO text.",
)

computations = Table(
    "computations",
    metadata,
    _module_id(),
    _required("computation", Text, "its name, without %"),
    _required("is_entry", Boolean, "the program starts here"),
    comment="An HLO computation, from HLO text.",
)

calls = Table(
    "calls",
    metadata,
    _module_id(),
    _required("instruction_id", Integer, "the calling instruction"),
    _required("attribute", Text, "as what it calls: calls, to_apply, body, condition and so on"),
    _required("computation", Text, "the called computation, see `computations`"),
    comment="A computation that an instruction calls, from HLO text.",
)

stack_frames = Table(
    "stack_frames",
    metadata,
    _module_id(),
    _required("stack_frame_id", Integer, "XLA's number of the frame"),
    _optional("parent_frame_id", Integer, "the frame that called it; null at the root"),
    _optional("file", Text, "the Python file"),
    _optional("function", Text, "the Python function"),
    _optional("line", Integer, "the line, from 1"),
    _optional("end_line", Integer, "the line where the call ends"),
    _optional("column_start", Integer, "the column, from 1"),
    _optional("column_end", Integer, "the column where the call ends"),
    comment="A Python frame, from HLO text.",
)

compiler_flags = Table(
    "compiler_flags",
    metadata,
    _required("flags_id", BigInteger, "64-bit hash of the flag set, see `dumps`"),
    _required(
        "flag", Text, "the flag's name; what and where to dump is left out, it changes no program"
    ),
    _required("value", Text, "its value"),
    comment="A flag of a set of compiler flags.",
)

reported_peak = Table(
    "reported_peak",
    metadata,
    _module_id(),
    _required("rank", Integer, "from 0, in XLA's order"),
    _required("instruction", Text, "the defining instruction's name"),
    _optional("shape_index", Text, "which part of its shape; null where XLA did not print it"),
    _required("size_bytes", BigInteger, "logical size, as XLA reports it"),
    comment="A row of XLA's own list of what is live at its peak.",
)

occupancy = Table(
    "occupancy",
    metadata,
    _module_id(),
    _required("memory_space", Integer, "the memory space"),
    _required("start_time", Integer, "the row holds from here to the next row's start_time"),
    _required("live_bytes", BigInteger, "sum of the live values' sizes; aliased ones count twice"),
    _required("occupied_bytes", BigInteger, "union of the live values' addresses"),
    comment="How full a memory space is, from one change to the next.",
)

module_memory = Table(
    "module_memory",
    metadata,
    _module_id(),
    _required("memory_space", Integer, "the memory space"),
    _optional("total_bytes", BigInteger, "sum of its allocations"),
    _optional("argument_bytes", BigInteger, "of these: parameters"),
    _optional("output_bytes", BigInteger, "of these: maybe live out"),
    _optional("alias_bytes", BigInteger, "of these: parameters that are maybe live out"),
    _optional("constant_bytes", BigInteger, "of these: constants"),
    _optional("thread_local_bytes", BigInteger, "of these: thread-local"),
    _optional("temp_bytes", BigInteger, "of these: preallocated temp"),
    _optional("peak_bytes", BigInteger, "the largest occupied_bytes; null without live ranges"),
    _optional("peak_time", Integer, "the first time it is reached"),
    _optional("peak_live_bytes", BigInteger, "live_bytes at peak_time"),
    _optional("peak_instruction_id", Integer, "the instruction at peak_time"),
    _optional(
        "fragmentation_bytes",
        BigInteger,
        "what packing wastes: total_bytes - thread_local_bytes - peak_bytes",
    ),
    _optional("fragmentation", Double, "fragmentation_bytes over temp_bytes"),
    _optional(
        "padding_bytes",
        BigInteger,
        "size - logical size of what is live at the peak, an aliased extent counted once",
    ),
    comment="A module's memory in one space: what trends read.",
)

history = Table(
    "history",
    metadata,
    _required("dump_id", BigInteger, "the dump, see `dumps`"),
    _required("series_id", BigInteger, "the chain of dumps that it belongs to, one a run"),
    _required("series_number", Integer, "1 for the first chain of its workload, name, platform"),
    _required("chain_index", Integer, "the dump's place in its chain, from 1"),
    _optional("previous_dump_id", BigInteger, "the dump before it in the chain"),
    _optional("compared_dump_id", BigInteger, "the last dump before it that has figures"),
    _optional("level_index", Integer, "chain_index of the first dump in a row of its content"),
    _optional("matched_by", Text, "content, signature or order; null for a chain's first dump"),
    _optional("missed_runs", Integer, "runs between it and previous_dump_id"),
    _required("is_last", Boolean, "it is the chain's last dump"),
    comment="Which dump follows which from run to run. Worked out after every change of runs.",
)

accepted_changes = Table(
    "accepted_changes",
    metadata,
    _required("run_id", Text, "the run whose figure was accepted, see `runs`"),
    _required("series_id", BigInteger, "the series, see `history`"),
    _required("memory_space", Integer, "its memory space"),
    _required("metric", Text, "the metric, for example peak_bytes"),
    _required("accepted_bytes", BigInteger, "the value that was accepted"),
    _required("reason", Text, "why"),
    _required("accepted_at", DateTime(timezone=True), "when it was accepted (UTC)"),
    comment="A growth that `memhouse check --accept` let pass: from then on the new normal.",
)

schema_version = Table(
    "schema_version",
    metadata,
    _key("version", Integer, "the number of the newest upgrade that was applied"),
    comment="The schema's version.",
)

view_set = Table(
    "view_set",
    metadata,
    _key("digest", Text, "SHA-256 of the canned views' SQL"),
    comment="Which canned views are stored here; another memhouse version replaces them.",
)


# The columns that tell a row from all others, of tables without a PRIMARY KEY.
KEYS = {
    "dump_files": ("dump_id", "path"),
    "entry_shapes": ("module_id", "is_output", "parameter_number", "shape_index"),
    "memory_spaces": ("module_id", "memory_space"),
    "allocations": ("module_id", "allocation_index"),
    "values": ("module_id", "value_id"),
    "positions": ("module_id", "value_id", "position_index"),
    "uses": ("module_id", "value_id", "use_index"),
    "live_ranges": ("module_id", "value_id"),
    "instructions": ("module_id", "instruction_id"),
    "operands": ("module_id", "instruction_id", "operand_number"),
    "computations": ("module_id", "computation"),
    "stack_frames": ("module_id", "stack_frame_id"),
    "compiler_flags": ("flags_id", "flag"),
    "reported_peak": ("module_id", "rank"),
    "occupancy": ("module_id", "memory_space", "start_time"),
    "module_memory": ("module_id", "memory_space"),
    "history": ("dump_id",),
}

# Tables that users do not ask for.
INTERNAL = frozenset({"schema_version", "view_set"})

for _name, _columns in KEYS.items():
    metadata.tables[_name].comment = f"{metadata.tables[_name].comment} Key: {', '.join(_columns)}."
