"""The parts of a program: the contract between `ingest/readers/` and XLA's rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from ..compiler_passes import PassText

# The parts of a program: the contract between `readers/` and all that works on parts.
#
# A part is a few Arrow tables. Parts refer to instructions by name, because all files of a
# module use the same names. A field that the source does not provide is None. `not_understood`
# lists what the source says and no reader knows; the rest of the part stands without it.

# The origin of figures. dumped: XLA's own buffer assignment and live ranges; derived: live
# ranges computed from the schedule; estimated: without a buffer assignment.
Origin = Literal["dumped", "derived", "estimated"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)

# Parts by their names in messages.
BUFFER_ASSIGNMENT = "BufferAssignment"
USED_VALUES = "Used values"
LIVE_RANGE = "HloLiveRange"


class NotUnderstood(NamedTuple):
    """What a newer XLA prints and a reader passed over: the line, from 1, and what it is."""

    line: int
    what: str


NotUnderstoods = tuple[NotUnderstood, ...]


class Unread(NamedTuple):
    """What a reader left out of a damaged text: the first line, from 1, and what and why."""

    line: int
    what: str


@dataclass(frozen=True)
class BufferAssignment:
    """The allocations and their values, in the dump's order.

    allocations: as in the warehouse's table; values: value_id, instruction, shape_index,
    is_phi, memory_space, allocation_index, offset_bytes, size_bytes, logical_bytes, shape,
    element_type; peak_high: of an estimate without a schedule, each memory space's peak_high_bytes.
    `unread` is what is left out of a pasted text; `is_whole` says whether all allocations are
    there, so that they add up.
    """

    allocations: pa.Table
    values: pa.Table
    origin: Origin = "dumped"
    peak_high: Mapping[int, int] = field(default_factory=dict)
    not_understood: NotUnderstoods = ()
    unread: tuple[Unread, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True)
class UsedValues:
    """The positions and uses of values, in the dump's order.

    values: value_id, instruction, shape_index, is_phi, memory_space;
    positions: value_id, position_index, instruction, shape_index;
    uses: value_id, use_index, instruction, operand_number, operand_shape_index;
    definitions: the columns of `HloText.instructions`, a row for each defining instruction.
    The definitions repeat the HLO text, so they are None if the dump has HLO text; `unread` says
    which are damaged.
    """

    total_bytes: int | None
    values: pa.Table
    positions: pa.Table
    uses: pa.Table
    definitions: pa.Table | None = None
    origin: Origin = "dumped"
    not_understood: NotUnderstoods = ()
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True)
class LiveRange:
    """The schedule, the live ranges and XLA's own peak, in the dump's order.

    schedule: schedule_time, instruction; ranges: instruction, shape_index, start_time,
    end_time; peak: rank, instruction, shape_index, size_bytes. `peak_time` is None if
    XLA could not determine the peak (unbounded dynamic shapes).
    """

    schedule_length: int
    schedule: pa.Table
    ranges: pa.Table
    peak_time: int | None
    peak: pa.Table
    origin: Origin = "dumped"
    not_understood: NotUnderstoods = ()


@dataclass(frozen=True)
class HloAttributes:
    """What only dataflow, liveness and sharing need of the instructions; it is not stored.

    lines: of each row of `HloText.instructions` its number in the file, a binary's its place.
    aliasing_operands: the instructions whose backend_config says which operands and results
    share memory: row, from 0 in `instructions`; lists, the text of the lists, empty if nothing
    shares. loop_facts: what tells how often loops run: row; trip_count, of a while; integer, of a
    scalar constant; is_less_than, of a compare. is_gpu: whether the attributes are of a GPU's
    compiler; has_dma_priority: whether a
    backend_config has this attribute of the newest libtpu.
    """

    lines: pa.Array
    aliasing_operands: pa.Table
    loop_facts: pa.Table
    is_gpu: bool
    has_dma_priority: bool


@dataclass(frozen=True)
class HloText:
    """A module's HLO text, in the text's order.

    header: columns of `modules`; computations: computation, is_entry; instructions:
    instruction, opcode, shape, op_name, source_file, source_line, stack_frame_id,
    custom_call_target, scoped_bytes, scoped_space, used_scoped_bytes, computation, is_root,
    parameter_number, tuple_index, fusion_kind, attributes as in the warehouse's table; operands:
    instruction, operand_number, operand; calls: instruction, attribute, computation; stack_frames
    as in the warehouse's table; entry_shapes likewise, None if the text has no signature; kernels:
    what Pallas kernels keep on chip: instruction, part, kind, space, shape, buffers, operand;
    control: what must run before what, though nothing is read: instruction, predecessor.

    `attributes` reads the rest on demand, because ingest of a dump with live ranges does not
    need the rest. A reader of another format provides its own function. Therefore a HloText
    cannot be pickled; parts never leave the process that read them.

    `unread` is what is left out of a damaged text. What uses an instruction that was left out has
    an operand that is in no row of `instructions`.
    """

    header: dict[str, object]
    computations: pa.Table
    instructions: pa.Table
    operands: pa.Table
    calls: pa.Table
    stack_frames: pa.Table
    entry_shapes: pa.Table | None
    attributes: Callable[[], HloAttributes]
    kernels: pa.Table
    control: pa.Table
    not_understood: NotUnderstoods = ()
    unread: tuple[Unread, ...] = ()


@dataclass
class Parts:
    """The parts of one program; a missing or unreadable part is None.

    space_names: memory_space, space_name; doubled: the names of the parts that are in two
    files; is_binary: the buffer assignment is a binary's, which is never half read; totals: the
    bytes of each memory space, where nothing but a usage report says them; pass_texts: the texts
    between the compiler's passes, which are read later.
    """

    buffer_assignment: BufferAssignment | None = None
    used_values: UsedValues | None = None
    live_range: LiveRange | None = None
    space_names: pa.Table | None = None
    hlo: HloText | None = None
    doubled: list[str] = field(default_factory=list)
    is_binary: bool = False
    totals: dict[int, int] | None = None
    pass_texts: Sequence[PassText] = ()


# The memory spaces of a module and their names, also for sources that do not name them.
#
# The binary of a TPU program has only the numbers. libtpu's memory usage reports give them these
# names, in every version that names spaces at all.

_OF_TPU = {0: "default", 1: "vmem", 2: "smem", 4: "host"}


def with_space_names(parts: Parts, platform: str | None) -> Parts:
    """The parts, where a TPU's memory spaces have names."""
    if parts.space_names is None and parts.buffer_assignment is not None and platform == "tpu":
        used = parts.buffer_assignment.allocations["memory_space"].unique().sort()
        names = [_OF_TPU.get(space, f"color_{space}") for space in used.to_pylist()]
        parts.space_names = pa.table(
            {"memory_space": used, "space_name": pa.array(names, pa.large_string())}
        )
    return parts


def memory_spaces(parts: Parts, platform: str | None) -> pa.Table:
    """Every space that an allocation is in or the usage report names.

    Columns: memory_space, space_name, space (of SPACES).
    """
    none = pa.table(
        {"memory_space": pa.array([], pa.int32()), "space_name": pa.array([], pa.large_string())}
    )
    rows = parts.space_names if parts.space_names is not None else none
    if parts.buffer_assignment is not None:
        used = pc.unique(parts.buffer_assignment.allocations["memory_space"])
        unnamed = used.filter(
            pc.invert(pc.is_in(used, value_set=rows["memory_space"].combine_chunks()))
        )
        rest = pa.table(
            {"memory_space": unnamed, "space_name": pa.nulls(len(unnamed), pa.large_string())}
        )
        rows = pa.concat_tables([rows, rest]).sort_by("memory_space")
    spaces = [
        space_of(row["memory_space"], row["space_name"], platform) for row in rows.to_pylist()
    ]
    return rows.append_column("space", pa.array(spaces, pa.string()))


# What people call a memory space.
SPACES = ("hbm", "host", "vmem", "smem", "sflag", "cmem", "other")
# By platform and XLA's number: only some dumps have XLA's name. 5 of a GPU is pinned host memory.
_SPACE_OF_NUMBER: dict[tuple[str | None, int], str] = {
    ("tpu", 1): "vmem",
    ("tpu", 2): "smem",
    ("gpu", 5): "host",
}


def space_of(memory_space: int, name: str | None, platform: str | None) -> str:
    """What people call a memory space, of SPACES: by its number, and by XLA's name for it.

    >>> space_of(0, "default", "tpu"), space_of(0, None, "cpu"), space_of(7, "color_7", "tpu")
    ('hbm', 'host', 'other')
    >>> space_of(1, None, "tpu"), space_of(1, None, None)
    ('vmem', 'other')
    """
    if name is not None and name.lower() in SPACES:
        return name.lower()
    if memory_space == 0:
        return "host" if platform == "cpu" else "hbm"
    return _SPACE_OF_NUMBER.get((platform, memory_space), "other")


def with_spaces(rows: pa.Table, spaces: pa.Table) -> pa.Table:
    """Rows with a memory_space, with the names of `spaces` as the column space."""
    at = pc.index_in(rows["memory_space"], value_set=spaces["memory_space"].combine_chunks())
    space = spaces["space"].combine_chunks().take(at.combine_chunks())
    place = rows.schema.get_field_index("space")
    if place >= 0:
        return rows.set_column(place, "space", space)
    return rows.append_column("space", space)
