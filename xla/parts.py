"""The contents of a dump about memory: the contract between the readers and the rules.

All files of a module use the same instruction names, so that these refer to instructions by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from .compiler_passes import PassText
from .program import NotUnderstood, Program, Unread

# Origins of figures. dumped: XLA's own buffer assignment and live ranges; derived: live
# ranges computed from the schedule; estimated: without a buffer assignment.
Origin = Literal["dumped", "derived", "estimated"]
ORIGINS: Final[tuple[Origin, ...]] = get_args(Origin)

# The names of parts in messages.
BUFFER_ASSIGNMENT: Final = "BufferAssignment"
USED_VALUES: Final = "Used values"
LIVE_RANGE: Final = "HloLiveRange"


class Allocation(NamedTuple):
    """A buffer allocation: a row of `allocations`, in bytes."""

    allocation_index: int
    memory_space: int
    size_bytes: int
    is_parameter: bool
    parameter_number: int | None
    parameter_shape_index: str | None
    is_output: bool
    is_constant: bool
    is_thread_local: bool
    maybe_live_out: bool
    is_temp: bool
    shape: str | None
    address: int | None


class AssignedValue(NamedTuple):
    """A value and its offset in an allocation: sizes and offset in bytes."""

    value_id: int
    instruction: str
    shape_index: str
    is_phi: bool
    memory_space: int
    allocation_index: int | None = None
    offset_bytes: int | None = None
    size_bytes: int | None = None
    logical_bytes: int | None = None
    shape: str | None = None
    element_type: str | None = None


class Position(NamedTuple):
    """A part of an instruction's result that holds a value; index 0 is the definition."""

    value_id: int
    position_index: int
    instruction: str
    shape_index: str


class Use(NamedTuple):
    """A read of a value: the user, the operand's number, and the part of the operand."""

    value_id: int
    use_index: int
    instruction: str
    operand_number: int
    operand_shape_index: str


class LiveRange(NamedTuple):
    """The first and last schedule time at which a value is live, both inclusive."""

    instruction: str
    shape_index: str
    start_time: int
    end_time: int


class PeakValue(NamedTuple):
    """A value that XLA lists as live at its own peak."""

    instruction: str
    shape_index: str | None
    size_bytes: int


@dataclass
class BufferAssignment:
    """The allocations and the values in them, in the dump's order.

    Attributes:
        peak_high: by memory space, the peak of an estimate in a worse schedule, in bytes.
        unread: the lines of a pasted text that were skipped.
        is_complete: whether all allocations were read, so that they add up.
    """

    allocations: list[Allocation]
    values: list[AssignedValue]
    origin: Origin = "dumped"
    peak_high: dict[int, int] = field(default_factory=dict)
    not_understood: Sequence[NotUnderstood] = ()
    unread: Sequence[Unread] = ()
    is_complete: bool = True


@dataclass
class UsedValues:
    """The values with their positions and uses, in the dump's order.

    Attributes:
        values: of AssignedValue only value_id to memory_space are stated.
        total_bytes: of all allocations; None if not stated.
        definitions: the defining instructions, read if the dump lacks HLO text.
    """

    total_bytes: int | None
    values: list[AssignedValue]
    positions: list[Position]
    uses: list[Use]
    definitions: Program | None = None
    origin: Origin = "dumped"
    not_understood: Sequence[NotUnderstood] = ()
    unread: Sequence[Unread] = ()


@dataclass
class LiveRanges:
    """The schedule, the live ranges and XLA's own peak, in the dump's order.

    Attributes:
        schedule: the names of the instructions by time.
        peak_time: None if XLA could not determine it (unbounded dynamic shapes).
        peak: the values live then.
    """

    schedule: list[str]
    ranges: list[LiveRange]
    peak_time: int | None
    peak: list[PeakValue]
    origin: Origin = "dumped"
    not_understood: Sequence[NotUnderstood] = ()


@dataclass
class Parts:
    """The parts of one program; None for a part that is missing or unreadable.

    Attributes:
        space_names: by memory space, XLA's name for it.
        duplicated: the parts that two files contain.
        is_binary: whether the assignment is a binary's, which is never half read.
        totals: by memory space, bytes, where only a usage report states them.
        pass_texts: the texts between the compiler's passes, which are read later.
    """

    assignment: BufferAssignment | None = None
    used_values: UsedValues | None = None
    live_ranges: LiveRanges | None = None
    program: Program | None = None
    space_names: dict[int, str] | None = None
    duplicated: list[str] = field(default_factory=list)
    is_binary: bool = False
    totals: dict[int, int] | None = None
    pass_texts: Sequence[PassText] = ()
