"""Every table of the warehouse: columns, types and meanings.

These comments are stored in the database and become the data dictionary.
Sizes and offsets are bytes (BIGINT); times are positions in the module's flattened
schedule, and both ends of a live range are inclusive.

A primary key identifies a row, and a foreign key joins two tables: at most one leads from a table
to another, so that SQLAlchemy joins them without a condition. flags_id and files_id lead to the
rows of a set. A file has few of these keys (see `ddl.py`); `memhouse verify` checks all.

The file is long because it is one list of all columns.
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
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType

from ..xla.compiler_passes import EVENTS
from ..xla.donations import PAIRED_BY
from ..xla.kernels import KINDS
from ..xla.order import MAX_INSTRUCTIONS
from ..xla.owners.candidates import RULES
from ..xla.parts import ORIGINS
from ..xla.passes import PASSES
from ..xla.peak_parts import CATEGORIES
from ..xla.roles import ROLES
from ..xla.spaces import SPACES
from .history.pairing import MATCHES
from .readable import quoted

metadata = MetaData()

# The schema of tables and views that users do not query; the others are in the default schema.
INTERNAL = "internal"

# DuckDB does not put a longer text into a dictionary.
SHORT_TEXT_BYTES = 4096
# What changes a warehouse.
ACTIONS = (
    "ingest",
    "read again",
    "replace",
    "prune",
    "label",
    "accept",
    "compact",
    "merge",
    "sql",
)


class OneOf(UserDefinedType[str]):
    """A closed list of words: an ENUM of DuckDB. In Arrow and in Delta tables it is text."""

    cache_ok = True

    def __init__(self, *words: str) -> None:
        self.words = words

    def get_col_spec(self, **_: Any) -> str:
        """The type in SQL."""
        return f"ENUM({', '.join(map(quoted, self.words))})"


_Type = type[TypeEngine[Any]] | TypeEngine[Any]


def _key(
    name: str, type_: _Type, comment: str, *refers: ForeignKey, nullable: bool = False
) -> Column[Any]:
    return Column(
        name,
        type_,
        *refers,
        primary_key=True,
        autoincrement=False,
        nullable=nullable,
        comment=comment,
    )


def _required(name: str, type_: _Type, comment: str, *refers: ForeignKey) -> Column[Any]:
    return Column(name, type_, *refers, nullable=False, comment=comment)


def _optional(name: str, type_: _Type, comment: str, *refers: ForeignKey) -> Column[Any]:
    return Column(name, type_, *refers, comment=comment)


def _metric(
    name: str, place: int, comment: str, better: str = "lower", *, regresses: bool = True
) -> Column[Any]:
    """A metric of `module_memory`, which has a history.

    `xla/figures.py` computes it, and `ingest/orders.py` those of other orders.

    place: where it is shown among the metrics
    better: lower or higher
    regresses: whether the view `regressions` tells of its growth
    """
    info = {"place": place, "better": better, "regresses": regresses}
    return Column(name, BigInteger, comment=comment, info=info)


def _shape(comment: str) -> list[Column[Any]]:
    """A shape: the column to read, and the two columns that store it.

    Many rows share few shapes, but one long text keeps DuckDB from using a dictionary for the
    column. Long shapes, such as those of large tuples, therefore have a column of their own.
    """
    return [
        Column("shape", Text, Computed("coalesce(_short_shape, _long_shape[1])"), comment=comment),
        _optional("_short_shape", Text, f"`shape` where it is up to {SHORT_TEXT_BYTES} bytes"),
        _optional("_long_shape", ARRAY(Text), "`shape` where it is longer, as a list of one text"),
    ]


def _space() -> Column[Any]:
    return _optional(
        "space",
        OneOf(*SPACES),
        "the memory space by name: hbm, the main memory of a TPU or GPU; host, that of a CPU; "
        "vmem, smem, sflag, cmem or other",
    )


def _module_id() -> Column[Any]:
    return _key(
        "module_id", BigInteger, "the module, see `modules`", ForeignKey("modules.module_id")
    )


def _refers(table: str, column: str, key: str = "") -> ForeignKeyConstraint:
    """The foreign key to a row of the same module in another table."""
    return ForeignKeyConstraint(
        ["module_id", column], [f"{table}.module_id", f"{table}.{key or column}"]
    )


runs = Table(
    "runs",
    metadata,
    _key("run_id", Text, "the user's name for the run"),
    _required(
        "run_at",
        DateTime,
        "the time by which runs are ordered (UTC): claimed_at, else when the run entered",
    ),
    _required("run_seq", Integer, "the order in which runs first entered: it orders equal run_at"),
    _required("ingested_at", DateTime, "when the run was first ingested (UTC)"),
    _required("source", Text, "the ingested path, as given"),
    _required("tool_version", Text, "the memhouse version that ingested the run"),
    _optional(
        "claimed_at",
        DateTime,
        "the date that the user claims, by --at or in the run's name (UTC); null without one",
    ),
    _optional(
        "compiled_at",
        DateTime,
        "the time of the newest file (UTC) of the part that entered first; copies and archives "
        "change it: it orders nothing",
    ),
    comment="A row per ingested run, for example a night.",
)

run_parts = Table(
    "run_parts",
    metadata,
    _key("run_id", Text, "the run, see `runs`", ForeignKey("runs.run_id")),
    _key(
        "host",
        Text,
        "the host that --host named; null for what was ingested without",
        nullable=True,
    ),
    _required("source", Text, "the ingested path, as given"),
    _required("entered_at", DateTime, "when the part entered, or was replaced (UTC)"),
    comment="A row per part of a run: what a host ingested by itself.",
)

journal = Table(
    "journal",
    metadata,
    _key("entry", Integer, "the place in the order of all changes, from 1"),
    _required("entered_at", DateTime, "when the change was made (UTC)"),
    _required(
        "action",
        OneOf(*ACTIONS),
        f"{', '.join(ACTIONS)}",
    ),
    _optional("run_id", Text, "the run, which may be gone by now; null if no run was named"),
    _optional("host", Text, "the host whose part it is; null without one"),
    _required("detail", Text, "what was done, in words"),
    _required("tool_version", Text, "the memhouse version that made the change"),
    _required("reader_version", Integer, "the version of its readers, see `modules`"),
    _required("user_name", Text, "the user's name on the machine; empty if it has none"),
    comment="A row per change of the warehouse. Rows are only ever added.",
)

run_labels = Table(
    "run_labels",
    metadata,
    _key("run_id", Text, "the run, see `runs`", ForeignKey("runs.run_id")),
    _key("key", Text, "the label's name, for example branch, commit or jax"),
    _required("value", Text, "the label's value"),
    comment="A row per label of a run: branch, commit, jax version and the like.",
)

dumps = Table(
    "dumps",
    metadata,
    _key("dump_id", BigInteger, "hash of run, workload and the dump's file name"),
    _required("run_id", Text, "the run, see `runs`", ForeignKey("runs.run_id")),
    _required("workload", Text, "the dump's folder relative to the ingested path, `.` if none"),
    _required("module_name", Text, "the HLO module's name"),
    _optional("module_number", Integer, "the module's number within its process (module_NNNN)"),
    _required(
        "occurrence", Integer, "1 for the first module of its name and platform in run and workload"
    ),
    _optional("platform", Text, "cpu, gpu or tpu; null if the file's name does not say"),
    _optional("target", Text, "the target in the file's name, for example sm_9.0a_gpu"),
    _optional("compiler", Text, "libtpu's changelist in the file's name, for example 933746096"),
    _optional(
        "module_id",
        BigInteger,
        "the content, see `modules`; null if nothing was readable",
        ForeignKey("modules.module_id"),
    ),
    _optional(
        "flags_id",
        BigInteger,
        "the flags, see `compiler_flags`; null if none were dumped",
        ForeignKey("compiler_flags.flags_id"),
    ),
    _optional("device_kind", Text, "the target device as users name it, for example TPU v5e"),
    _optional(
        "device_memory_bytes",
        BigInteger,
        "what a program may use of the target device's memory; null if not known",
    ),
    _optional("topology", Text, "the number of TPU chips and hosts of the target"),
    _required(
        "status",
        OneOf("ok", "partial", "failed"),
        "ok; partial: a part is missing or unreadable; failed: nothing read",
    ),
    _required("oom", Boolean, "XLA ran out of memory while compiling the module"),
    _optional("host", Text, "the host that ingested it, see `run_parts`; null without one"),
    _optional(
        "files_id",
        BigInteger,
        "the files, see `file_sets` and `dump_files`",
        ForeignKey("file_sets.files_id"),
    ),
    comment="A row per module as dumped in a run. Many dumps may share one module.",
)

file_sets = Table(
    "file_sets",
    metadata,
    _key("files_id", BigInteger, "the set of files, see `dumps`: a hash of all its rows"),
    _key(
        "name",
        Text,
        "the file, relative to the dump's workload; after a slash relative to the ingested path",
    ),
    _required("kind", Text, "what the file holds, for example live-range"),
    _optional("bytes", BigInteger, "the uncompressed size; null if the file could not be read"),
    _optional(
        "sha256",
        Text,
        "SHA-256 of the uncompressed file, in hex; of a HloProto, one that equal messages share",
    ),
    _required(
        "status",
        OneOf("ok", "partial", "failed", "contradicts", "missing"),
        "ok; failed: nothing was read; partial: a part was read; "
        "contradicts: contradicts another file; missing: the dump lacks the file",
    ),
    _optional("line", Integer, "the line that the message is about, from 1"),
    _optional(
        "message",
        Text,
        "what is wrong, and what to do; of a file that is ok: what was not "
        "understood or cannot be known",
    ),
    comment="A row per file of the dumps of a set, and whether memhouse could read it: what many "
    "hosts and nights dump alike is stored once. `dump_files` has the files of each dump.",
)

modules = Table(
    "modules",
    metadata,
    _key("module_id", BigInteger, "hash of the module's name and its files' content"),
    _required("module_name", Text, "the HLO module's name"),
    _optional(
        "program_id",
        BigInteger,
        "hash of what the program is: instructions, allocations, values and live ranges, "
        "without names, source lines and constants' values; null without HLO text. Equal: the "
        "same memory program",
    ),
    _optional(
        "skeleton_id",
        BigInteger,
        "hash of the arguments' names and ranks: equal for another batch size or dtype",
    ),
    _optional("schedule_length", Integer, "instructions in the flattened schedule"),
    _optional(
        "reported_total_bytes",
        BigInteger,
        "XLA's own `Total bytes used`, all spaces; where no text says it, all allocations",
    ),
    _optional(
        "reported_peak_time",
        Integer,
        "the time of XLA's own estimated peak; worked out as XLA does where origin is derived",
    ),
    _optional(
        "reported_peak_bytes",
        BigInteger,
        "XLA's own peak: the sum of logical sizes, without padding, over all memory spaces; "
        "peak_bytes is of one space, with padding",
    ),
    _optional("entry_signature", Text, "parameter and result shapes: entry_computation_layout"),
    _optional("is_scheduled", Boolean, "the HLO text's order is XLA's schedule"),
    _optional("num_partitions", Integer, "SPMD partitions the module was compiled for"),
    _optional("replica_count", Integer, "replicas the module was compiled for"),
    _optional(
        "origin",
        OneOf(*ORIGINS),
        "dumped: XLA's own live ranges; derived: live ranges worked out from the schedule, exact; "
        "estimated: without a buffer assignment, or by rules that are assumed; null without "
        "figures",
    ),
    _optional(
        "liveness_difference",
        Text,
        "where the live ranges, positions or uses that follow from the HLO text differ from "
        "the dumped ones; null if they agree or nothing was compared",
    ),
    _optional(
        "reader_version",
        Integer,
        "the version of the readers that worked out its rows; 0: before versions were kept",
    ),
    _optional(
        "grade",
        Integer,
        "how good the figures are: 0 exact; 1 estimated; 2 estimated without a schedule; figures "
        "of one grade are never compared with those of another; null without figures",
    ),
    _optional(
        "assumed",
        Text,
        "the opcodes that no rule of dataflow covers, with how many instructions have each, for "
        "example all-to-all-start (12): what they do with memory is assumed, so that origin is "
        "estimated unless XLA's own live ranges were dumped; null if there are none",
    ),
    _optional(
        "flops",
        BigInteger,
        "the FLOPs of dots and convolutions in one execution, loops counted; null without HLO text",
    ),
    _optional(
        "unknown_loops",
        Integer,
        "the loops whose trip count is not known: flops counts their bodies once",
    ),
    comment="A row per module: its content, stored once even if many runs dumped it.",
)

entry_shapes = Table(
    "entry_shapes",
    metadata,
    _module_id(),
    _key("is_output", Boolean, "true for the result, false for an argument"),
    _key("parameter_number", Integer, "the argument's number; null for the result", nullable=True),
    _key("shape_index", Text, "the part of the argument or result, `{}` for the whole"),
    _optional("argument_name", Text, "the argument's name in the framework, for example p['emb']"),
    _optional("sharding", Text, "how the argument is sharded, as XLA prints it; null if not told"),
    _required("shape", Text, "the shape with layout"),
    _optional("element_type", Text, "for example bf16"),
    _optional(
        "logical_bytes", BigInteger, "elements x element size; null if unbounded or not known"
    ),
    _optional(
        "padded_bytes", BigInteger, "logical size plus tile padding; null if unbounded or not known"
    ),
    _optional("value_id", Integer, "the value that it is, see `values`; null if not known"),
    _refers("values", "value_id"),
    comment="A row per array in the entry computation's arguments or result.",
)

donations = Table(
    "donations",
    metadata,
    _module_id(),
    _key("parameter_number", Integer, "the argument's number"),
    _key("parameter_shape_index", Text, "the part of the argument, `{}` for the whole"),
    _optional(
        "output_shape_index",
        Text,
        "the part of the result that takes its memory; null: it is donated, and nothing does",
    ),
    _required(
        "paired_by",
        OneOf(*PAIRED_BY),
        "header: it is donated, as the HLO text's header says; of what is not: shape: JAX would "
        "pair the two, of one element type and dimensions; bytes: XLA would",
    ),
    _optional(
        "late_reader_instruction_id",
        Integer,
        "of what is not donated: the last instruction that reads it after the output is written",
    ),
    _refers("instructions", "late_reader_instruction_id", "instruction_id"),
    comment="A row per array of an argument that is donated, or that could be, as an output fits.",
)

donation_copies = Table(
    "donation_copies",
    metadata,
    _module_id(),
    _key("parameter_number", Integer, "the argument's number, see `donations`"),
    _key("parameter_shape_index", Text, "the part of the argument, `{}` for the whole"),
    _key("instruction_id", Integer, "the copy"),
    _required("other_value_id", Integer, "the value of the two that has memory of its own"),
    _refers("instructions", "instruction_id"),
    _refers("values", "other_value_id", "value_id"),
    comment="A row per copy that XLA makes of a donated argument, or of the value that becomes the "
    "output in its memory.",
)

allocations = Table(
    "allocations",
    metadata,
    _module_id(),
    _key("allocation_index", Integer, "XLA's number of the allocation"),
    _required("memory_space", Integer, "the allocation's memory space"),
    _required("size_bytes", BigInteger, "the allocation's size"),
    _required("is_parameter", Boolean, "holds an argument of the entry computation"),
    _optional("parameter_number", Integer, "the argument's number"),
    _optional("parameter_shape_index", Text, "the part of the argument, `{}` for the whole"),
    _required("is_output", Boolean, "holds the entry computation's result"),
    _required("is_constant", Boolean, "holds a constant"),
    _required("is_thread_local", Boolean, "belongs to a computation within one instruction"),
    _required("maybe_live_out", Boolean, "may hold a result after the program has ended"),
    _required("is_temp", Boolean, "is the preallocated temp, shared by values over time"),
    _optional("shape", Text, "the shape of the argument or result, without layout"),
    _optional(
        "value_id",
        Integer,
        "the value that the allocation is for: the argument, the result, the constant; null of a "
        "temp",
    ),
    _optional("peak_bytes", BigInteger, "of a temp: the maximum of its occupied bytes over time"),
    _optional("peak_time", Integer, "of a temp: the first time of peak_bytes"),
    _optional("address", BigInteger, "the address in the compiler's process (some old dumps)"),
    _space(),
    _refers("module_memory", "memory_space"),
    comment="A row per buffer allocation.",
)

values = Table(
    "values",
    metadata,
    _module_id(),
    _key("value_id", Integer, "XLA's number of the value"),
    _required("instruction_id", Integer, "the instruction that defines the value"),
    _required(
        "shape_index",
        Text,
        "the part of the instruction's shape, `{}` for the whole; the result is {0} of copy-start, "
        "{1} of async-start and collective-permute-start",
    ),
    _required("is_phi", Boolean, "merges values of a loop or conditional"),
    _required("memory_space", Integer, "the value's memory space"),
    _optional("allocation_index", Integer, "the value's allocation, see `allocations`"),
    _optional("offset_bytes", BigInteger, "the value's start within the allocation"),
    _optional("size_bytes", BigInteger, "the occupied size, tiled and padded"),
    _optional(
        "logical_bytes",
        BigInteger,
        "elements x element size; for a tuple: its index table; "
        "null if the size of the element type is not known",
    ),
    *_shape("the shape with layout"),
    _optional("element_type", Text, "for example bf16; null for a tuple"),
    _optional(
        "origin_instruction_id",
        Integer,
        "the instruction whose result the value holds; instruction_id only made it. Null without "
        "HLO text, and where nothing says what it holds",
    ),
    _optional(
        "origin_rule",
        OneOf(*RULES),
        "how the origin was found: argument, own, moved, loop, fused, becomes, read; operand "
        "(a guess: the largest operand) or weak (only a wrapper's name)",
    ),
    _optional(
        "pass",
        OneOf(*PASSES),
        "argument, forward, backward, rematerialised, optimizer; other without a backward pass, "
        "and for what depends on gradients in a program that does not train",
    ),
    _optional(
        "role",
        OneOf(*ROLES),
        "weight, optimizer state, state, input, gathered weight, activation, gradient, output, "
        "constant or workspace",
    ),
    _optional(
        "alias_set",
        Integer,
        "the smallest value_id of those that must share a buffer; `alias_sets` has those in temps",
    ),
    _optional("residual_id", Integer, "the residual that the value holds, see `residuals`"),
    _optional(
        "last_use_time",
        Integer,
        "the last time at which an instruction computes from the value or copies it; in a loop "
        "until the body ends; an asynchronous copy counts at its start, though it reads until its "
        "done; null if nothing does, and without scheduled HLO text",
    ),
    _space(),
    _refers("instructions", "instruction_id"),
    _refers("allocations", "allocation_index"),
    _refers("residuals", "residual_id"),
    comment="A row per HLO value: one tensor, from definition to last use. An instruction of a "
    "tuple shape defines a value for each part and one for the index table, `{}`.",
)

alias_sets = Table(
    "alias_sets",
    metadata,
    _module_id(),
    _key("alias_set", Integer, "the smallest value_id of the values"),
    _required("value_id", Integer, "the largest of the values"),
    _required("start_time", Integer, "the first time a value of the set is live"),
    _required("end_time", Integer, "the last time a value of the set is live"),
    _required(
        "idle_start_time",
        Integer,
        "the last touch before the longest stretch in which nothing reads or writes the set; an "
        "asynchronous copy touches it at its start alone",
    ),
    _required("idle_end_time", Integer, "the first touch after that stretch"),
    _required(
        "peak_idle_time",
        Integer,
        "how long the stretch without a touch around the peak is; 0 if touched or not live there",
    ),
    _refers("values", "value_id"),
    comment="A row per set of values that must share one buffer, in a temp allocation: loops, "
    "updates in place.",
)

residuals = Table(
    "residuals",
    metadata,
    _module_id(),
    _key("residual_id", Integer, "from 0, the largest first"),
    _required("value_id", Integer, "the largest value that holds it"),
    _required("layers", Integer, "the number of layers that it is stacked over; 1 if not stacked"),
    _required("made_instruction_id", Integer, "the instruction that computes it"),
    _optional(
        "read_instruction_id", Integer, "the first instruction of the backward that reads it"
    ),
    _required("start_time", Integer, "the first time it is live"),
    _required("end_time", Integer, "the last time it is live"),
    _required(
        "idle_start_time",
        Integer,
        "the last touch before its longest stretch without any, as in `alias_sets`",
    ),
    _required("idle_end_time", Integer, "the first touch after that stretch"),
    _required("peak_idle_time", Integer, "as in `alias_sets`"),
    _refers("instructions", "made_instruction_id", "instruction_id"),
    comment="A row per tensor that the forward pass keeps for the backward pass, with all its "
    "copies in one memory space; copies in another memory space are a residual of their own.",
)

positions = Table(
    "positions",
    metadata,
    _module_id(),
    _key("value_id", Integer, "the value, see `values`"),
    _key("position_index", Integer, "0 is where the value is defined"),
    _required("instruction_id", Integer, "the instruction whose output holds the value"),
    _required("shape_index", Text, "the part of the output, `{}` for the whole"),
    _refers("values", "value_id"),
    _refers("instructions", "instruction_id"),
    comment="A row per position of a value: a part of an instruction's output.",
)

uses = Table(
    "uses",
    metadata,
    _module_id(),
    _key("value_id", Integer, "the value, see `values`"),
    _key("use_index", Integer, "from 0, in XLA's order"),
    _required("instruction_id", Integer, "the instruction that uses the value"),
    _required("operand_number", Integer, "the operand's number, from 0"),
    _required("operand_shape_index", Text, "the part of the operand, `{}` for the whole"),
    _refers("values", "value_id"),
    _refers("instructions", "instruction_id"),
    comment="A row per use of a value.",
)

live_ranges = Table(
    "live_ranges",
    metadata,
    _module_id(),
    _key("value_id", Integer, "the value, see `values`"),
    _required("start_time", Integer, "the first time the value is live"),
    _required("end_time", Integer, "the last time the value is live; schedule_length if live out"),
    _refers("values", "value_id"),
    comment="A row per value with a live range; thread-local values and some constants have none.",
)

instructions = Table(
    "instructions",
    metadata,
    _module_id(),
    _key("instruction_id", Integer, "memhouse's number of the instruction within the module"),
    _required("instruction", Text, "the name, without %"),
    _optional("computation", Text, "the instruction's computation; null without HLO text"),
    _optional("schedule_time", Integer, "time in the flattened schedule; null if not scheduled"),
    _optional("opcode", Text, "for example fusion or copy-start"),
    *_shape("the output's shape with layout"),
    _optional("op_name", Text, "the operation's name in the framework: a scope path"),
    _optional("source_file", Text, "the file of source_line"),
    _optional(
        "source_line",
        Integer,
        "the line of the user's code that created the instruction: the innermost frame that is in"
        " no library; null if all are, or if nothing tells",
    ),
    _optional("stack_frame_id", Integer, "the innermost Python frame, see `stack_frames`"),
    _optional("scope_id", Integer, "the scope and operation, see `scopes`; null if not named"),
    _optional(
        "pass",
        OneOf(*PASSES),
        "the pass that the instruction belongs to: as in `values`",
    ),
    _optional("custom_call_target", Text, "the kernel that a custom-call calls"),
    _optional("scoped_bytes", BigInteger, "memory that is reserved for the kernel, all spaces"),
    _optional(
        "is_root",
        Boolean,
        "whether it gives its computation's result; null without HLO text",
    ),
    _optional("parameter_number", Integer, "which operand of the caller a parameter is, from 0"),
    _optional("tuple_index", Integer, "which element a get-tuple-element takes, from 0"),
    _optional("fusion_kind", Text, "for example kLoop"),
    _optional(
        "attributes",
        Text,
        "what it does to dimensions, as XLA prints it: lhs_contracting_dims={1},"
        " rhs_contracting_dims={0}; null if nothing",
    ),
    _optional("source_frame_id", Integer, "the Python frame of source_line, see `stack_frames`"),
    _optional("library_file", Text, "the file of library_line"),
    _optional(
        "library_line",
        Integer,
        "the innermost line that created the instruction, if it is a library's; null if it is"
        " source_line",
    ),
    _optional(
        "scoped_space", Integer, "the memory space of scoped_bytes; null if there are several"
    ),
    _optional(
        "used_scoped_bytes",
        BigInteger,
        "memory that the compiler says it uses while it runs; null if not said, as in dumps of"
        " HLO text before code was generated",
    ),
    _optional(
        "flops",
        BigInteger,
        "of a dot or convolution: the FLOPs of one execution, see `computations`.executions; an"
        " addition and a multiplication are two",
    ),
    _refers("computations", "computation"),
    _refers("scopes", "scope_id"),
    _refers("stack_frames", "stack_frame_id"),
    comment="A row per instruction named anywhere in the module.",
)

kernel_parts = Table(
    "kernel_parts",
    metadata,
    _module_id(),
    _key("instruction_id", Integer, "the kernel, see `instructions`"),
    _key("part", Integer, "from 0, in the order of the kernel's arguments"),
    _required(
        "kind",
        OneOf(*KINDS),
        "input or output: a block, held in VMEM while the kernel works on it; scratch; allocation,"
        " in the kernel's body; prefetched; semaphore",
    ),
    _optional(
        "space",
        OneOf(*SPACES),
        "the memory space by name: vmem, smem, or sflag of semaphores; null of an array that stays"
        " where XLA has it",
    ),
    _required("shape", Text, "the shape, of VMEM with the tiles that pad it"),
    _required(
        "buffers",
        Integer,
        "2 of a pipelined block; 0 of a block of an array that is in VMEM as a whole, and of"
        " scratch that each step writes before it reads it, which the compiler keeps in registers",
    ),
    _optional(
        "size_bytes", BigInteger, "all its buffers with padding; null outside of VMEM and SMEM"
    ),
    _refers("instructions", "instruction_id"),
    comment="A row per block, scratch or semaphore that a Pallas kernel for TPU keeps on chip, "
    "from the module in its backend_config.",
)

scopes = Table(
    "scopes",
    metadata,
    _module_id(),
    _key("scope_id", Integer, "from 0"),
    _required("scope", Text, "the op_name's path without transformations, wrappers and loops"),
    _required("operation", Text, "the op_name's last component, for example dot_general"),
    _optional(
        "module_path",
        Text,
        "the modules of scope, without operations such as jit(silu) and einsums; scope itself where"
        " it has no modules",
    ),
    _optional(
        "fold",
        Text,
        "module_path with {} for the number of a repeated layer, for example net/block_{}/mlp: the"
        " same for all of its repetitions",
    ),
    comment="A row per scope of the program and operation in it: what op_names say, stored once.",
)

operands = Table(
    "operands",
    metadata,
    _module_id(),
    _key("instruction_id", Integer, "the instruction, see `instructions`"),
    _key("operand_number", Integer, "from 0"),
    _required("operand_instruction_id", Integer, "the instruction that computes the operand"),
    _refers("instructions", "instruction_id"),
    comment="A row per operand of an instruction, from HLO text.",
)

control_dependencies = Table(
    "control_dependencies",
    metadata,
    _module_id(),
    _key("instruction_id", Integer, "the instruction, see `instructions`"),
    _key("predecessor_instruction_id", Integer, "the instruction that must run before it"),
    _refers("instructions", "instruction_id"),
    comment="A row per order between two instructions of a computation that no operand asks for: "
    "control-predecessors in HLO text.",
)

compiler_passes = Table(
    "compiler_passes",
    metadata,
    _module_id(),
    _key("step", Integer, "XLA's number of the text; the final text is one more"),
    _optional("pipeline", Text, "the pipeline of passes; null of the final text"),
    _optional(
        "compiler_pass",
        Text,
        "the pass that the text was written after; pipeline-start before the first of a pipeline; "
        "null where the text's name does not say it, and of the final text",
    ),
    _required("instructions", Integer, "how many there are, those in fusions included"),
    _required(
        "estimated_peak_bytes",
        BigInteger,
        "an estimate: the most bytes of values in the main memory at one time, were the program "
        "to run in the text's order",
    ),
    _required(
        "digest",
        BigInteger,
        "a hash of opcodes, shapes and operands, without names, and of the order where it is "
        "XLA's schedule",
    ),
    _optional(
        "changes", Text, "the opcodes whose counts changed since the text before, with the changes"
    ),
    _required("text_bytes", BigInteger, "the text's size"),
    comment="A row per text of the program between two passes of the compiler, which XLA dumps "
    "with --xla_dump_hlo_pass_re.",
)

compiler_pass_events = Table(
    "compiler_pass_events",
    metadata,
    _module_id(),
    _key("value_id", Integer, "the value that is live at the peak, see `values`"),
    _key("event_number", Integer, "from 0, the first"),
    _required(
        "event",
        OneOf(*EVENTS),
        "program: the instruction was there before all passes; appeared; fused; copied; "
        "rematerialised; asynchronous: it became one; layout; type; replaced: another instruction "
        "took its place",
    ),
    _required("step", Integer, "the text in which it is so first, see `compiler_passes`"),
    _required("instruction", Text, "the name of the instruction from this text on"),
    _optional("before", Text, "its name in the text before; null if it was not there"),
    _required("is_certain", Boolean, "names or all that is said of the instruction tell it"),
    _refers("values", "value_id"),
    _refers("compiler_passes", "step"),
    comment="A row per event in which the compiler's passes changed the instruction that makes a "
    "large buffer of the peak.",
)

computations = Table(
    "computations",
    metadata,
    _module_id(),
    _key("computation", Text, "the name, without %"),
    _required("is_entry", Boolean, "the program starts here"),
    _optional(
        "executions",
        BigInteger,
        "how often it runs in one execution of the program: loops multiply, a loop of unknown trip"
        " count counts once (trip_count of its body in `calls` is null, `modules`.unknown_loops "
        "counts such loops), and of a conditional all branches count",
    ),
    comment="A row per HLO computation, from HLO text.",
)

calls = Table(
    "calls",
    metadata,
    _module_id(),
    _key("instruction_id", Integer, "the calling instruction"),
    _key("attribute", Text, "the attribute that names the computation, for example body"),
    _key("call_number", Integer, "from 0 within the attribute, for example a branch"),
    _required("computation", Text, "the called computation, see `computations`"),
    _optional(
        "trip_count",
        BigInteger,
        "how often a loop calls it: what XLA says, else by its counter; null of other calls, and"
        " where it is not known",
    ),
    _refers("instructions", "instruction_id"),
    _refers("computations", "computation"),
    comment="A row per computation that an instruction calls, from HLO text.",
)

stack_frames = Table(
    "stack_frames",
    metadata,
    _module_id(),
    _key("stack_frame_id", Integer, "XLA's number of the frame"),
    _optional("parent_frame_id", Integer, "the calling frame; null at the root"),
    _optional("file", Text, "the Python file"),
    _optional("function", Text, "the Python function"),
    _optional("line", Integer, "the line, from 1"),
    _optional("end_line", Integer, "the line where the call ends"),
    _optional("column_start", Integer, "the column, from 1"),
    _optional("column_end", Integer, "the column where the call ends"),
    _refers("stack_frames", "parent_frame_id", "stack_frame_id"),
    comment="A row per Python frame, from HLO text.",
)

compiler_flags = Table(
    "compiler_flags",
    metadata,
    _key("flags_id", BigInteger, "hash of the flag set, see `dumps`"),
    _key(
        "flag",
        Text,
        "the flag's name; flags of dumps, caches and toolchain folders are left out, because they "
        "do not change the program",
    ),
    _required("value", Text, "the flag's value; of a file's path only the file's name"),
    comment="A row per flag of a set of compiler flags.",
)

reported_peak = Table(
    "reported_peak",
    metadata,
    _module_id(),
    _key("rank", Integer, "from 0, in XLA's order"),
    _required("instruction", Text, "the defining instruction's name"),
    _optional("shape_index", Text, "the part of the instruction's shape; null if not printed"),
    _required("size_bytes", BigInteger, "the logical size, as XLA reports it"),
    comment="A row per value in XLA's own list of those that are live at its peak; where origin "
    "is derived, the list is worked out as XLA does.",
)

occupancy = Table(
    "occupancy",
    metadata,
    _module_id(),
    _key("memory_space", Integer, "the memory space"),
    _key("start_time", Integer, "the row is valid from here to the next row's start_time"),
    _required("live_bytes", BigInteger, "sum of the live values' sizes; aliased ones count twice"),
    _required("occupied_bytes", BigInteger, "union of the live values' addresses"),
    _space(),
    _refers("module_memory", "memory_space"),
    comment="A row per memory space and stretch of the schedule without a change: how full the "
    "space is.",
)

module_memory = Table(
    "module_memory",
    metadata,
    _module_id(),
    _key("memory_space", Integer, "XLA's number (color): 0 is the main memory, HBM"),
    _optional(
        "space_name",
        Text,
        "the name in the memory usage report; of a TPU's binary, libtpu's; null if not named",
    ),
    _metric("total_bytes", 2, "the sum of the space's allocations", regresses=False),
    _metric("reserved_bytes", 3, "total_bytes - thread_local_bytes: what must fit"),
    _metric("argument_bytes", 4, "the part of total_bytes in parameters"),
    _metric("output_bytes", 5, "the part of total_bytes that is maybe live out"),
    _metric("alias_bytes", 6, "the part of total_bytes in maybe live out parameters", "higher"),
    _metric("constant_bytes", 7, "the part of total_bytes in constants", regresses=False),
    _metric(
        "thread_local_bytes", 8, "the part of total_bytes that is thread-local", regresses=False
    ),
    _metric("temp_bytes", 9, "the part of total_bytes in preallocated temps"),
    _metric("peak_bytes", 1, "the largest occupied_bytes; null without live ranges"),
    _optional("peak_time", Integer, "the first time of peak_bytes"),
    _optional("peak_live_bytes", BigInteger, "live_bytes at peak_time"),
    _optional("peak_instruction_id", Integer, "the instruction at peak_time"),
    _metric(
        "fragmentation_bytes",
        10,
        "bytes that packing wastes: reserved_bytes - peak_bytes",
    ),
    _optional("fragmentation", Double, "fragmentation_bytes / temp_bytes"),
    _metric(
        "live_bound_bytes",
        12,
        "of the preallocated temps: the most that is live at one time, a bound for any packing",
    ),
    _metric(
        "padding_bytes",
        11,
        "size - logical size of the values live at the peak, an aliased extent counted once",
    ),
    _optional(
        "peak_upper_bytes",
        BigInteger,
        "of HLO text without a schedule: the peak in the worse of two orders, where peak_bytes is "
        "that in the better one, which the rows of the module show; null of scheduled programs",
    ),
    _space(),
    _metric(
        "order_bytes",
        13,
        "how much less the temps would hold in the best other order of the same instructions that "
        "was found; null unless ingested with --orders, of estimates, without temps, and of more "
        f"than {MAX_INSTRUCTIONS} instructions",
    ),
    _metric(
        "order_bound_bytes",
        14,
        "in no order of the same instructions the temps hold less; null as order_bytes, and where "
        "XLA alone knows what shares memory",
        regresses=False,
    ),
    _refers("instructions", "peak_instruction_id", "instruction_id"),
    comment="A row per module and memory space, with the metrics that `trends` follows.",
)

traits = Table(
    "traits",
    metadata,
    _module_id(),
    _key("trait", Text, "what is described, for example saved or collective"),
    _key("name", Text, "of which: a source line, an opcode; empty if there is one only"),
    _required("amount", BigInteger, "bytes or a count, as the trait says"),
    schema=INTERNAL,
    comment="A row per fact of a module from which the cause of a change is told, worked out at "
    "ingest.",
)

peak_parts = Table(
    "peak_parts",
    metadata,
    _module_id(),
    _key("part", Integer, "from 0, the largest first"),
    _required(
        "category", OneOf(*CATEGORIES), "argument, output, constant, other or temp, as in `buffers`"
    ),
    _optional(
        "role", OneOf(*ROLES), "as in `values`; null, as all below, where small parts are summed"
    ),
    _optional("pass", OneOf(*PASSES), "as in `values`"),
    _optional(
        "owner",
        Text,
        "the argument's name, else the scope, with # for numbers: layer_# for layer_0 and layer_1",
    ),
    _optional("operation", Text, "the framework's operation, else the opcode"),
    _optional("shape", Text, "the shape without layout; null of a tuple's index table"),
    _optional("source", Text, "the file and line of the user's code, such as zoo.py:40"),
    _required("buffers", Integer, "how many buffers these are"),
    _required("counted_bytes", BigInteger, "what they count for; all parts add up to the peak"),
    schema=INTERNAL,
    comment="A row per group of buffers that the main memory holds at its peak; another program "
    "has such groups as well.",
)

dump_series = Table(
    "dump_series",
    metadata,
    _key("dump_id", BigInteger, "the dump, see `dumps`", ForeignKey("dumps.dump_id")),
    _required("series_id", BigInteger, "the series that goes on with the dump"),
    _required(
        "series_number",
        Integer,
        "1 for the first series of its branch, suite, workload, name and platform; it never shifts",
    ),
    _optional(
        "matched_by",
        OneOf(*MATCHES),
        "how the series was recognised: only, program, signature, skeleton, order, workload "
        "renamed, module renamed or renamed; null if the series begins with the dump",
    ),
    _optional(
        "explained_dump_id", BigInteger, "the dump that `cause` compares with; null without one"
    ),
    _optional("cause", Text, "why the dump differs from explained_dump_id, in a line"),
    comment="A row per dump: its series, decided when its run entered; `history` reads it.",
)

causes = Table(
    "causes",
    metadata,
    _key("dump_id", BigInteger, "the dump, see `dumps`", ForeignKey("dumps.dump_id")),
    _key("rank", Integer, "from 1, in the order in which they are told"),
    _required(
        "kind", Text, "for example compiler, pass, argument, donation, layers, line or remainder"
    ),
    _required("term", Text, "what differs from compared_dump_id, in words"),
    _optional(
        "change_bytes",
        BigInteger,
        "how the peak of the main memory changes with it; null of what has no bytes of its own, "
        "such as a flag, and where a side has no figures",
    ),
    _optional("source", Text, "the line of most of these bytes, such as zoo.py:40"),
    _optional("role", OneOf(*ROLES), "the role of most of these bytes, as in `values`"),
    comment="A row per term of the cause of a dump's change: the change_bytes of a dump add up to"
    " the change of its peak against `history`.compared_dump_id.",
)

_metrics = sorted((c for c in module_memory.c if c.info), key=lambda c: int(c.info["place"]))
_METRICS = [metric.name for metric in _metrics]
accepted_changes = Table(
    "accepted_changes",
    metadata,
    _key(
        "dump_id",
        BigInteger,
        "the dump whose figure was accepted, see `dumps`",
        ForeignKey("dumps.dump_id"),
    ),
    _key("memory_space", Integer, "the memory space"),
    _key("metric", OneOf(*_METRICS), f"the metric: {', '.join(_METRICS)}"),
    _required("accepted_bytes", BigInteger, "the value that was accepted"),
    _required("reason", Text, "why the change was accepted"),
    _key("accepted_at", DateTime, "when it was accepted (UTC)"),
    comment="A row per growth accepted by `memhouse check --accept`: the new floor of its series.",
)

oom_reports = Table(
    "oom_reports",
    metadata,
    _key("oom_id", BigInteger, "hash of run, file and line of the message"),
    _required("run_id", Text, "the run, see `runs`", ForeignKey("runs.run_id")),
    _optional(
        "dump_id",
        BigInteger,
        "the dump of the module that did not fit, see `dumps`; null if the run has none, or "
        "nothing says which of several it is",
        ForeignKey("dumps.dump_id"),
    ),
    _required("path", Text, "the file that holds the message, relative to the ingested path"),
    _optional("line", Integer, "the message's first line, from 1"),
    _required("times", Integer, "how often the file holds the message"),
    _required(
        "kind",
        OneOf("program", "scoped", "allocation", "runtime"),
        "program: the whole program is over the memory; scoped: a kernel is over its scoped limit; "
        "allocation: one block is over the memory; runtime: no room when the program ran",
    ),
    _optional("space_name", Text, "the memory: hbm, vmem, smem and so on; gpu of a GPU"),
    _optional("module_name", Text, "the module's name; null if the message does not say it"),
    _optional(
        "capacity_bytes", BigInteger, "the memory that programs may use, as the message says"
    ),
    _optional("used_bytes", BigInteger, "what the program needs: temporaries, arguments, outputs"),
    _optional("exceeded_bytes", BigInteger, "how far the need is over the capacity or limit"),
    _optional("reserved_bytes", BigInteger, "what is reserved beside the program"),
    _optional("program_bytes", BigInteger, "what the program needs beside its arguments"),
    _optional("argument_bytes", BigInteger, "the part in arguments"),
    _optional("output_bytes", BigInteger, "the part in outputs"),
    _optional("alias_bytes", BigInteger, "the part of output_bytes in memory of arguments"),
    _optional("temp_bytes", BigInteger, "the part in temporaries"),
    _optional("fragmentation_bytes", BigInteger, "the part of temp_bytes that packing wastes"),
    _optional("requested_bytes", BigInteger, "the size of the allocation that failed"),
    _optional("limit_bytes", BigInteger, "the kernel's limit of scoped memory"),
    _optional("free_bytes", BigInteger, "what was free when the program ran"),
    _optional("instruction", Text, "the kernel, or the instruction of the allocation"),
    _optional("shape", Text, "the shape of the instruction or of the allocation"),
    _optional("tag", Text, "what the allocation is for, as XLA says, for example scratch operand"),
    _optional("op_name", Text, "the framework's name for the instruction"),
    _optional("source_file", Text, "the instruction's file in Python"),
    _optional("source_line", Integer, "the instruction's line in Python"),
    _required("is_rounded", Boolean, "XLA printed the sizes rounded, to 3 to 5 digits"),
    _required("is_cut", Boolean, "parts of the message are missing"),
    _required("message", Text, "the message's first line, at most 500 characters"),
    comment="A row per message of XLA that memory ran out, from a log or a dump's folder.",
)

oom_buffers = Table(
    "oom_buffers",
    metadata,
    _key("oom_id", BigInteger, "the message, see `oom_reports`", ForeignKey("oom_reports.oom_id")),
    _required("run_id", Text, "the run, see `runs`", ForeignKey("runs.run_id")),
    _key("rank", Integer, "XLA's number of the buffer, from 1, the largest first"),
    _required("size_bytes", BigInteger, "the size, with padding"),
    _required(
        "is_rounded",
        Boolean,
        "size_bytes is XLA's rounded figure; otherwise it is exact, from the shape",
    ),
    _optional("unpadded_bytes", BigInteger, "elements x element size"),
    _optional("padding_bytes", BigInteger, "what tiles add; null if the message does not say"),
    _optional("shape", Text, "the shape with layout; null if it is cut"),
    _optional("element_type", Text, "for example bf16"),
    _optional("instruction", Text, "the instruction that defines the buffer"),
    _optional("opcode", Text, "the instruction's opcode"),
    _optional("op_name", Text, "the framework's name for the instruction"),
    _optional("source_file", Text, "the instruction's file in Python"),
    _optional("source_line", Integer, "the instruction's line in Python"),
    _optional("stack_frame_id", Integer, "the Python stack, which only the dump can look up"),
    _optional("allocation_type", Text, "for example HLO temp; argument for an argument"),
    comment="A row per buffer that a message of XLA lists among the largest.",
)

# These two have one row and no PRIMARY KEY, because each key takes a block of the file.
schema_version = Table(
    "schema_version",
    metadata,
    _required("version", Integer, "the number of the schema's version"),
    _required("layout", Text, "the digest of the tables' names, columns and types"),
    schema=INTERNAL,
    comment="The schema's version.",
)

view_set = Table(
    "view_set",
    metadata,
    _required("digest", Text, "SHA-256 of the canned views' SQL"),
    schema=INTERNAL,
    comment="The stored set of canned views; another memhouse version replaces it.",
)


for _table in metadata.tables.values():
    if _table.primary_key:
        _table.comment = f"{_table.comment} Key: {', '.join(_table.primary_key.columns.keys())}."


def foreign_keys() -> list[ForeignKeyConstraint]:
    """All foreign keys, in the order of the tables."""
    return [
        key
        for table in metadata.tables.values()
        for key in sorted(table.foreign_key_constraints, key=lambda key: [*key.column_keys])
    ]
