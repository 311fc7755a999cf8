"""The buffers of the main memory at its peak, in groups that two programs can be compared by."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .figures import NO_RANGE, Ranges
from .opcodes import COLLECTIVE_ENDS, COLLECTIVES, unnumbered
from .parts import BufferAssignment
from .program import NONE

MAIN_MEMORY: Final = 0
# The largest groups have a row each, if they have at least this share of the peak.
_MAX_PARTS: Final = 400
_MIN_SHARE: Final = 1e-4
CATEGORIES = ("argument", "output", "constant", "other", "temp")
_LAYOUT = re.compile(r"\{[^{}]*\}")
_FOLDER = re.compile(r"^.*[/\\]")
_COLLECTIVES = frozenset((*COLLECTIVES, *COLLECTIVE_ENDS))


class PeakBuffer(NamedTuple):
    """A buffer that the main memory holds at its peak.

    Attributes:
        value_id: NONE for an allocation without a known value.
        counted_bytes: bytes that no buffer at a lower address covers; all add up to the peak.
        category: one of CATEGORIES.
    """

    value_id: int
    counted_bytes: int
    category: str


class BufferLabels(NamedTuple):
    """The names by which buffers of two programs are matched; None if not known."""

    role: str | None = None
    pass_name: str | None = None
    owner: str | None = None
    operation: str | None = None
    shape: str | None = None
    source: str | None = None


class PeakPart(NamedTuple):
    """A row of `peak_parts`: buffers of one category with the same labels.

    A row for small groups has only a category.
    """

    part: int
    category: str
    role: str | None
    pass_name: str | None
    owner: str | None
    operation: str | None
    shape: str | None
    source: str | None
    buffers: int
    counted_bytes: int


def buffers_at_peak(
    assignment: BufferAssignment, shown_values: Sequence[int], ranges: Ranges, peak_time: int
) -> list[PeakBuffer]:
    """The buffers of the main memory at its peak: values of temps, then whole other allocations.

    Addresses that several values share count for the first value in address order.

    Args:
        shown_values: by allocation, the id of the value that it is for, or NONE.
        peak_time: the time of the main memory's peak.
    """
    buffers: list[PeakBuffer] = []
    row_of_temp: dict[int, int] = {}
    for row, allocation in enumerate(assignment.allocations):
        if allocation.memory_space == MAIN_MEMORY and allocation.is_temp:
            row_of_temp.setdefault(allocation.allocation_index, row)
    live = []
    for value in assignment.values:
        temp = row_of_temp.get(NONE if value.allocation_index is None else value.allocation_index)
        start, end = ranges.get(value.value_id, NO_RANGE)
        if temp is not None and start <= peak_time <= end:
            size = value.size_bytes or 0
            live.append((temp, value.offset_bytes or 0, -size, value.value_id))
    covered, covered_row = 0, NONE
    for row, low, negative_size, value_id in sorted(live):
        if row != covered_row:
            covered, covered_row = 0, row
        high = low - negative_size
        buffers.append(PeakBuffer(value_id, max(high - max(low, covered), 0), "temp"))
        covered = max(covered, high)
    for allocation, value_id in zip(assignment.allocations, shown_values, strict=True):
        is_main = allocation.memory_space == MAIN_MEMORY
        if not is_main or allocation.is_temp or allocation.is_thread_local:
            continue
        if allocation.is_parameter:
            category = "argument"
        elif allocation.maybe_live_out:
            category = "output"
        else:
            category = "constant" if allocation.is_constant else "other"
        buffers.append(PeakBuffer(value_id, allocation.size_bytes, category))
    return buffers


def peak_parts(buffers: Sequence[PeakBuffer], labels: Mapping[int, BufferLabels]) -> list[PeakPart]:
    """Group buffers by category and labels, the largest group first, the small ones last.

    Args:
        labels: by value_id.
    """
    counts: Counter[tuple[str, BufferLabels]] = Counter()
    sizes: Counter[tuple[str, BufferLabels]] = Counter()
    # Groups of one size come in the order in which their labels first appear, column by column.
    ranks: list[dict[str | None, int]] = [{None: NONE} for _ in PeakPart._fields[1:-2]]
    for buffer in buffers:
        key = (buffer.category, labels.get(buffer.value_id, BufferLabels()))
        counts[key] += 1
        sizes[key] += buffer.counted_bytes
        for rank, label in zip(ranks, (key[0], *key[1]), strict=True):
            rank.setdefault(label, len(rank))
    total = sizes.total()

    def sort_key(key: tuple[str, BufferLabels]) -> tuple[int, ...]:
        ranked = (rank[label] for rank, label in zip(ranks, (key[0], *key[1]), strict=True))
        return (-sizes[key], *ranked)

    rows: list[tuple[str, BufferLabels, int, int]] = []
    small_counts: Counter[str] = Counter()
    small_sizes: Counter[str] = Counter()
    for number, key in enumerate(sorted(sizes, key=sort_key)):
        if number < _MAX_PARTS and sizes[key] >= _MIN_SHARE * total:
            rows.append((*key, counts[key], sizes[key]))
        else:
            small_counts[key[0]] += counts[key]
            small_sizes[key[0]] += sizes[key]
    for category in sorted(small_sizes, key=lambda category: ranks[0][category]):
        rows.append((category, BufferLabels(), small_counts[category], small_sizes[category]))
    return [
        PeakPart(part, category, *group_labels, count, size)
        for part, (category, group_labels, count, size) in enumerate(row for row in rows if row[-1])
    ]


def label_buffer(
    *,
    role: str | None,
    pass_name: str | None,
    shape: str | None,
    opcode: str | None,
    op_name: str | None,
    scope: str | None,
    operation: str | None,
    source_file: str | None,
    source_line: int | None,
) -> BufferLabels:
    """The labels of a value.

    Args:
        role, pass_name, shape: those of the value; the shape with layout.
        opcode, op_name, source_file, source_line: those of the value's origin.
        scope, operation: the origin's scope and framework operation.
    """
    if opcode in _COLLECTIVES:
        operation = opcode.removesuffix("-start").removesuffix("-done")
    owner = op_name if pass_name == "argument" else scope
    is_tuple = shape is not None and shape.startswith("(")
    return BufferLabels(
        role,
        pass_name,
        None if owner is None else unnumbered(owner),
        opcode if operation is None else operation,
        # A tuple's table of pointers has no shape to compare.
        None if shape is None or is_tuple else _LAYOUT.sub("", shape),
        source_line_name(source_file, source_line),
    )


def source_line_name(source_file: str | None, source_line: int | None) -> str | None:
    """A file and a line, such as `zoo.py:40`; None without one of them."""
    if source_file is None or source_line is None:
        return None
    return f"{_FOLDER.sub('', source_file)}:{source_line}"
