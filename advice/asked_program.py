"""A program of the warehouse as `advise` asks it, and its memory replayed with changes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from sys import intern
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..queries.catalogue import statement
from ..schema.store import Store
from ..xla.occupancy import Changes, Extent, occupied_changes, sum_changes
from ..xla.program import Program as Hlo
from .flow import Ints
from .graph import Graph
from .stored_program import stored_program

_Result = TypeVar("_Result")

# Where and when the values of a memory space stand: what a replay starts from.


@dataclass(frozen=True)
class Layout:
    """The allocations of a memory space, and the values that temps hold or that share others.

    Allocations that are not temps are occupied throughout. All arrays of values have one row a
    value with a live range: `offset` and `size` in bytes, `start` and `end` inclusive times.

    allocation_index, allocation_bytes, is_temp: a row an allocation that is not thread-local.
    is_followed: whether the values could be followed through the program, if there are any; what
    could not be is alone in its alias_set.
    """

    memory_space: int
    schedule_length: int
    peak_bytes: int
    peak_time: int
    allocation_index: Ints
    allocation_bytes: Ints
    is_temp: np.ndarray[tuple[int], np.dtype[np.bool_]]
    value_id: Ints
    allocation: Ints
    offset: Ints
    size: Ints
    start: Ints
    end: Ints
    alias_set: Ints
    is_followed: bool

    def rows_of(self, values: Ints) -> Ints:
        """The rows of these values; values without a live range have none."""
        return np.flatnonzero(np.isin(self.value_id, values))


def read_layout(store: Store, module_id: int, memory_space: int = 0) -> Layout | None:
    """The layout of a module's memory space; None without live ranges."""
    (memory,) = store.rows(statement("advise.memory"), [module_id, memory_space]).to_pylist() or [
        None
    ]
    if memory is None or None in (memory["peak_bytes"], memory["schedule_length"]):
        return None
    allocations = store.rows(statement("advise.allocations"), [module_id, memory_space])
    values = store.rows(statement("advise.values"), [module_id, memory_space])
    alone = pa.array(-1 - np.arange(len(values)))
    return Layout(
        memory_space,
        memory["schedule_length"],
        memory["peak_bytes"],
        memory["peak_time"],
        _ints(allocations["allocation_index"]),
        _ints(allocations["size_bytes"]),
        allocations["is_temp"].to_numpy(),
        _ints(values["value_id"]),
        _ints(values["allocation_index"]),
        _ints(values["offset_bytes"]),
        _ints(values["size_bytes"]),
        _ints(values["start_time"]),
        _ints(values["end_time"]),
        _ints(pc.coalesce(values["alias_set"], alone)),
        not len(values) or values["alias_set"].null_count < len(values),
    )


def _ints(column: pa.ChunkedArray) -> Ints:
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found


def rows_with(ordered: Ints, value: int) -> slice:
    """The rows of a value in a column that is in order."""
    first, last = np.searchsorted(ordered, [value, value + 1]).tolist()
    return slice(first, last)


# A module as findings ask it: its layout, its instructions, and what they are computed from.


@dataclass(frozen=True)
class Program:
    """One memory space of a module; space 0 is the device's main memory.

    platform: cpu, gpu or tpu, None if not known; vmem_bytes: a TPU's memory on chip.
    """

    store: Store
    module_id: int
    dump_id: int
    platform: str | None
    vmem_bytes: int | None
    origin: str
    layout: Layout

    @cached_property
    def entry_arrays(self) -> pa.Table:
        """The arrays of arguments and result, in order: the columns of `advise.entry_arrays`."""
        return self.rows(statement("advise.entry_arrays"))

    @cached_property
    def instructions(self) -> pa.Table:
        """Every instruction, by instruction_id: the columns of `advise_instructions`."""
        return self.rows(statement("advise.instructions"))

    @cached_property
    def uses(self) -> pa.Table:
        """value_id, instruction_id, operand_number: a value's uses in order."""
        return self.rows(
            "SELECT value_id, instruction_id, operand_number FROM uses"
            " WHERE module_id = $1 ORDER BY value_id, use_index"
        )

    @cached_property
    def positions(self) -> pa.Table:
        """value_id, instruction_id, shape_index: a value's positions in order."""
        return self.rows(
            "SELECT value_id, instruction_id, shape_index FROM positions"
            " WHERE module_id = $1 ORDER BY value_id, position_index"
        )

    def holders(self, value: int) -> list[int]:
        """The instructions that hold a value, without tuples that hold it within."""
        rows = rows_with(self.positions["value_id"].to_numpy(), value)
        holders: list[int] = self.positions["instruction_id"][rows].to_pylist()
        return holders

    @cached_property
    def trains(self) -> bool:
        """Whether it has a backward pass."""
        found = self.rows(
            "SELECT 1 FROM instructions WHERE module_id = $1 AND pass = 'backward' LIMIT 1"
        )
        return bool(found.num_rows)

    @cached_property
    def graph(self) -> Graph:
        """The instructions and what they read and call. There must be a program."""
        assert self.hlo is not None
        return Graph(self.hlo)

    @cached_property
    def _worked_out(self) -> dict[object, Any]:
        return {}

    def worked_out(self, work_out: Callable[["Program"], _Result]) -> _Result:
        """What a function works out from the program; several findings ask for it."""
        if work_out not in self._worked_out:
            self._worked_out[work_out] = work_out(self)
        result: _Result = self._worked_out[work_out]
        return result

    def forget(self) -> None:
        """Give back what was worked out, which refers to the program that refers to it."""
        self._worked_out.clear()

    @cached_property
    def lines(self) -> dict[int, str]:
        """Of each value the line that it comes from, as file:line, where one is known."""
        return texts_of(self.rows(statement("advise.lines")), "source")

    @cached_property
    def hlo(self) -> Hlo | None:
        """The program as ingest had it; None if it was not kept, see `stored_program`."""
        return stored_program(self.store, self.module_id)

    def rows(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The rows of a query of which `$1` is the module; the parameters follow."""
        return self.store.rows(query, [self.module_id, *parameters])


def texts_of(rows: pa.Table, column: str) -> dict[int, str]:
    """A text of each value; few texts are different, and each is kept once."""
    texts = map(intern, rows[column].to_pylist())
    return dict(zip(rows["value_id"].to_pylist(), texts, strict=True))


def read_program(store: Store, module_id: int, dump_id: int, layout: Layout) -> Program:
    """The program of a module in a dump."""
    (row,) = store.rows(statement("advise.program"), [dump_id]).to_pylist()
    return Program(
        store,
        module_id,
        dump_id,
        row["platform"],
        row["vmem_bytes"],
        row["origin"],
        layout,
    )


# What a TPU keeps on chip, and so the bytes below which a change of lives says nothing.

# The most that a core of any TPU has, where the dump does not say which one it is for.
_MOST = 128 * 2**20
_WORTH = 0.01


def memory_on_chip(program: Program) -> int:
    """The bytes of VMEM, which XLA fills anew after a change; 0 but on TPU."""
    return (program.vmem_bytes or _MOST) if program.platform == "tpu" else 0


def least_saving(program: Program) -> int:
    """The saving from which on a finding about residuals is told."""
    return max(int(_WORTH * program.layout.peak_bytes), memory_on_chip(program))


# The lines of a program that a user can edit.


def line_of(program: Program, instruction_id: int) -> str | None:
    """The line that an instruction comes from, as file:line."""
    rows = program.rows(
        "SELECT source_file || ':' || source_line AS source FROM instructions"
        " WHERE module_id = $1 AND instruction_id = $2",
        [instruction_id],
    ).to_pylist()
    return rows[0]["source"] if rows else None


def function_line(program: Program) -> str | None:
    """The first line of the compiled function that computes something, as file:line.

    The line with `jax.jit` is not recorded, but it is close.
    """
    rows = program.rows(statement("advise.function_line")).to_pylist()
    return f"{rows[0]['file']}:{rows[0]['line']}" if rows else None


# Which values XLA would put into memory that becomes free within an allocation.
#
# XLA's buffer assignment takes the values by size, the largest first, and puts each into the
# smallest allocation that is large enough and free as long as the value lives.

# Values that are smaller than this part of the peak stay where they are: they make no difference.
_COUNTS = 1e-5
Times = list[tuple[int, int]]


@dataclass(frozen=True)
class FreeMemory:
    """Bytes of an allocation that are free from start through end, but for times in between."""

    size_bytes: int
    start_time: int
    end_time: int
    taken: Times


def values_that_move(
    layout: Layout, free: Sequence[FreeMemory], freed: frozenset[int], gone: set[int]
) -> set[int]:
    """The values of temps and of freed allocations that move into the free memory.

    Values that share a place as one move together. `gone` are values that are not there.
    """
    rooms = _Rooms(free)
    lives: dict[int, Times] = {}
    sizes: dict[int, int] = {}
    shared = layout.allocation_index[layout.is_temp | np.isin(layout.allocation_index, list(freed))]
    rows = np.flatnonzero(
        np.isin(layout.allocation, shared)
        & ~np.isin(layout.value_id, list(gone))
        & (layout.size <= max((each.size_bytes for each in free), default=0))
        & (layout.size > layout.peak_bytes * _COUNTS)
    )
    columns = (layout.alias_set, layout.size, layout.start, layout.end)
    for own, size, start, end in zip(*(each[rows].tolist() for each in columns), strict=True):
        lives.setdefault(own, []).append((start, end))
        sizes[own] = max(size, sizes.get(own, 0))
    by_size = sorted(lives, key=lambda each: (-sizes[each], min(lives[each])))
    moved = [own for own in by_size if rooms.take(sizes[own], lives[own])]
    return set(layout.value_id[np.isin(layout.alias_set, moved)].tolist())


def values_share_allocations(layout: Layout) -> bool:
    """Whether other values lie in memory of arguments and results."""
    fixed = ~np.isin(layout.allocation, layout.allocation_index[layout.is_temp])
    both = np.stack([layout.allocation[fixed], layout.alias_set[fixed]])
    return bool(np.unique(both, axis=1).shape[1] > len(np.unique(both[0])))


class _Rooms:
    """Free memory, the smallest first."""

    def __init__(self, free: Sequence[FreeMemory]) -> None:
        rooms = sorted(free, key=lambda each: each.size_bytes)
        self._taken = [list(each.taken) for each in rooms]
        self._sizes, self._starts, self._ends = (
            np.array(
                [(each.size_bytes, each.start_time, each.end_time) for each in rooms], np.int64
            )
            .reshape(-1, 3)
            .T
        )
        # What is taken in between lies within these times.
        within = [
            [(start, end) for start, end in each.taken if start <= each.end_time] for each in rooms
        ]
        self._first = np.array([min((a for a, _ in each), default=1 << 62) for each in within])
        self._last = np.array([max((b for _, b in each), default=-1) for each in within])
        self._has_gaps = np.array([len(each) > 1 for each in within], bool)

    def take(self, size: int, times: Times) -> bool:
        """Take the smallest room that is free at these times; whether there is one."""
        first = min(start for start, _ in times)
        last = max(end for _, end in times)
        is_clear = (last < self._first) | (self._last < first)
        may = is_clear | self._has_gaps | (len(times) > 1)
        may &= (self._sizes >= size) & (self._starts <= first) & (last <= self._ends)
        for at in np.flatnonzero(may).tolist():
            if is_clear[at] or _are_apart(self._taken[at], times):
                self._has_gaps[at] |= self._last[at] >= 0 or len(times) > 1
                self._taken[at] += times
                self._first[at] = min(self._first[at], first)
                self._last[at] = max(self._last[at], last)
                return True
        return False


def _are_apart(some: Times, others: Times) -> bool:
    return all(end < since or until < start for start, end in others for since, until in some)


# What the peak would be: the program's own lives and places, replayed with changes.
#
# A value that a change does not touch stays where XLA put it, and shares what it shares. A value
# that is changed gets a place of its own. Several changes are replayed together, because each
# lowers the peak only until another moment is the fullest.


@dataclass(frozen=True)
class Piece:
    """Bytes that are live from start through end; pieces of one place share it."""

    place: int
    size_bytes: int
    start_time: int
    end_time: int

    def is_throughout(self, layout: Layout) -> bool:
        """Whether they are live as long as the program runs."""
        return self.start_time == 0 and self.end_time >= layout.schedule_length


@dataclass(frozen=True)
class Change:
    """What a replay does otherwise. Values and allocations by their numbers.

    gone: values that are not there, or that are there otherwise: then as `pieces`.
    freed: allocations, not temps, that are not there. Values that only borrowed their room move
    to the temp.
    pieces: what is live instead, each place once, at its largest piece at a time.
    room: pieces of free memory within allocations, which temps may take.
    """

    gone: frozenset[int] = frozenset()
    freed: frozenset[int] = frozenset()
    pieces: tuple[Piece, ...] = ()
    room: tuple[Piece, ...] = ()

    def __or__(self, other: "Change") -> "Change":
        """Both changes; their places stay apart."""
        first = 1 + max((piece.place for piece in (*self.pieces, *self.room)), default=-1)
        moved = [
            tuple(
                Piece(first + piece.place, piece.size_bytes, piece.start_time, piece.end_time)
                for piece in pieces
            )
            for pieces in (other.pieces, other.room)
        ]
        return Change(
            self.gone | other.gone,
            self.freed | other.freed,
            self.pieces + moved[0],
            self.room + moved[1],
        )


@dataclass(frozen=True)
class Replayed:
    """A peak: bytes, and the first time of it."""

    peak_bytes: int
    peak_time: int


def together(changes: Iterable[Change]) -> Change:
    """All changes at once."""
    return reduce(Change.__or__, changes, Change())


def replay(layout: Layout, change: Change) -> Replayed:
    """The peak with the change made."""
    times, used = occupied(layout, change)
    fullest = int(np.argmax(used))
    return Replayed(int(used[fullest]), int(times[fullest]))


def occupied(layout: Layout, change: Change) -> tuple[Ints, Ints]:
    """The times at which the occupied bytes change, and the bytes from then on; at least one."""
    is_freed = np.isin(layout.allocation_index, list(change.freed))
    fixed = int(layout.allocation_bytes[~layout.is_temp & ~is_freed].sum())
    shared = layout.allocation_index[layout.is_temp | is_freed]
    bases = np.concatenate([[0], np.cumsum(layout.allocation_bytes[layout.is_temp | is_freed])])
    stays = np.isin(layout.allocation, shared) & ~np.isin(layout.value_id, list(change.gone))
    base = bases[np.searchsorted(shared, layout.allocation[stays])]
    low = base + layout.offset[stays]
    places, sizes, starts, ends = _columns(change.pieces)
    own = int(bases[-1]) + _offsets(places, sizes)
    columns = (
        np.concatenate([low, own]),
        np.concatenate([low + layout.size[stays], own + sizes]),
        np.concatenate([layout.start[stays], starts]),
        np.concatenate([layout.end[stays], ends]),
    )
    times, used = _arrays(occupied_changes(map(Extent, *(each.tolist() for each in columns))))
    if change.room:
        free = sum_changes(
            (piece.start_time, piece.end_time, piece.size_bytes) for piece in change.room
        )
        times, used = _less(times, used, *_arrays(free))
    within = times < layout.schedule_length
    times, used = times[within], used[within]
    if not len(used):
        return np.zeros(1, np.int64), np.array([fixed])
    return times, fixed + used


def _arrays(changes: Changes) -> tuple[Ints, Ints]:
    """The times and the amounts of changes."""
    columns = np.array(changes, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def saving(layout: Layout, change: Change) -> int:
    """By how many bytes the peak falls with the change made; less than 0 if it grows."""
    return replay(layout, Change()).peak_bytes - replay(layout, change).peak_bytes


def _columns(pieces: Sequence[Piece]) -> tuple[Ints, Ints, Ints, Ints]:
    rows = np.array(
        [(each.place, each.size_bytes, each.start_time, each.end_time) for each in pieces],
        np.int64,
    ).reshape(-1, 4)
    return rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]


def _offsets(places: Ints, sizes: Ints) -> Ints:
    """Where each place begins, if each is as large as its largest piece."""
    largest = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
    np.maximum.at(largest, places, sizes)
    return (np.cumsum(largest) - largest)[places]


def _less(times: Ints, used: Ints, room_times: Ints, room: Ints) -> tuple[Ints, Ints]:
    """What is used beyond the room, which is never less than nothing."""
    both = np.union1d(times, room_times)
    beyond = _at(times, used, both) - _at(room_times, room, both)
    return both, np.maximum(beyond, 0)


def _at(times: Ints, values: Ints, wanted: Ints) -> Ints:
    """The value that holds at each wanted time; 0 before the first."""
    place = np.searchsorted(times, wanted, side="right") - 1
    return np.where(place >= 0, values[np.maximum(place, 0)], 0)
