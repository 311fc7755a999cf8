"""Writes a module's memory as a trace that Perfetto shows: values over time, bytes as counters."""

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..queries.catalogue import statement
from ..queries.export import require_place
from ..queries.modules import FoundModule, find_module
from ..queries.result import without_layout
from ..schema.errors import MissingPackageError, UsageError
from ..schema.private_folder import whole_file
from ..schema.readable import figures_table, human_bytes
from ..schema.store import Store
from .colours import PASSES
from .module_spaces import Space, Stacks, counted_pieces, module_buffers, module_spaces, stacked

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

# Puts live ranges that overlap in time beside each other, in lanes ordered by address.


def most_at_once(starts: Sequence[int], ends: Sequence[int]) -> int:
    """How many live ranges there are at most at one time: fewer lanes cannot do."""
    times = np.concatenate([np.asarray(starts), np.asarray(ends) + 1])
    steps = np.repeat([1, -1], len(starts))
    # At one time, what has ended goes before what starts.
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max(initial=0))


def lanes_of(starts: Sequence[int], ends: Sequence[int], offsets: Sequence[int]) -> list[list[int]]:
    """The lanes: the numbers of the values in each, by address.

    The values of a lane never overlap in time; both ends of a live range are inclusive. The
    lowest addresses come first, and each value goes to the first lane that is free all its life:
    so a lane keeps to its part of the memory, and there are few more lanes than there must be.
    """
    lanes: list[list[int]] = []
    # A bit for each time at which a lane is taken.
    taken: list[int] = []
    for number in np.lexsort((starts, offsets)).tolist():
        start, end = starts[number], ends[number]
        life = ((1 << (end - start + 1)) - 1) << start
        lane = next((lane for lane, busy in enumerate(taken) if not busy & life), len(lanes))
        if lane == len(lanes):
            lanes.append([])
            taken.append(0)
        lanes[lane].append(number)
        taken[lane] |= life
    return lanes


# Writes tracks, slices and counters as a Perfetto trace.
#
# A trace is a list of packets. Texts that repeat are written once and then named by number, and
# the packets of a trace are deflated together, which the format provides for.

# A time of the schedule is drawn as a microsecond; traces are in nanoseconds.
NANOSECONDS = 1000
_INSTALL = "install what traces need: pip install 'memhouse[perfetto]'"
# All packets are of one writer, whose number is free.
_SEQUENCE = 1
# At one time, what ends leaves its track before the next slice enters.
_END, _COUNTER, _INSTANT, _BEGIN = range(4)


@dataclass
class _Texts:
    """Texts by number, from 1."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers) + 1)


class TraceFile:
    """A trace in the making: declare tracks, put slices and counts on them, and save it.

    Times are positions in the schedule. Raises MissingPackageError without perfetto.
    """

    def __init__(self) -> None:
        self._format = trace_format()
        self._tracks: list[Any] = []
        self._events: list[tuple[int, int, int, Any]] = []
        self._names = _Texts()
        self._keys = _Texts()
        self._values = _Texts()

    def track(
        self,
        name: str,
        parent: int | None = None,
        *,
        is_counter: bool = False,
        description: str | None = None,
    ) -> int:
        """A new track below its `parent`, after those that are there; its number.

        A counter counts bytes. Other tracks hold slices, or only further tracks.
        """
        packet = self._format.TracePacket()
        track = packet.track_descriptor
        track.uuid = len(self._tracks) + 1
        track.name = name
        # Perfetto would merge tracks that have the same name, and sort them by name.
        track.sibling_merge_behavior = track.SIBLING_MERGE_BEHAVIOR_NONE
        track.child_ordering = track.EXPLICIT
        track.sibling_order_rank = track.uuid
        if parent is not None:
            track.parent_uuid = parent
        if is_counter:
            track.counter.unit = track.counter.UNIT_SIZE_BYTES
            # Counters beside each other have one scale.
            track.counter.y_axis_share_key = "bytes"
        if description is not None:
            track.description = description
        self._tracks.append(packet)
        return len(self._tracks)

    def count(self, track: int, times: Iterable[int], values: Iterable[int]) -> None:
        """From each time on, the counter has this value."""
        self._events += [
            (time, _COUNTER, track, value) for time, value in zip(times, values, strict=True)
        ]

    def slice(
        self, track: int, start: int, end: int, name: str, said: Mapping[str, Any] | None = None
    ) -> None:
        """A slice from `start` to `end`, both inclusive, and what is `said` of it."""
        self._events += [
            (start, _BEGIN, track, (name, said or {})),
            (end + 1, _END, track, None),
        ]

    def instant(self, track: int, time: int, name: str) -> None:
        """A mark at a time."""
        self._events.append((time, _INSTANT, track, (name, {})))

    def save(self, path: Path) -> None:
        """Write the trace to a file. Raises OSError."""
        events = self._format.Trace()
        for time, kind, track, what in sorted(self._events, key=lambda event: event[:2]):
            self._add_event(events.packet.add(), time, kind, track, what)
        first = self._format.Trace()
        self._add_texts(first.packet.add())
        first.packet.extend(self._tracks)
        whole = self._format.Trace()
        packed = zlib.compress(first.SerializeToString() + events.SerializeToString())
        whole.packet.add().compressed_packets = packed
        path.write_bytes(whole.SerializeToString())

    def _add_event(self, packet: Any, time: int, kind: int, track: int, what: Any) -> None:
        packet.timestamp = time * NANOSECONDS
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = packet.SEQ_NEEDS_INCREMENTAL_STATE
        event = packet.track_event
        event.track_uuid = track
        if kind == _COUNTER:
            event.type = event.TYPE_COUNTER
            event.counter_value = what
            return
        if kind == _END:
            event.type = event.TYPE_SLICE_END
            return
        event.type = event.TYPE_INSTANT if kind == _INSTANT else event.TYPE_SLICE_BEGIN
        name, said = what
        event.name_iid = self._names.number(name)
        for key, value in said.items():
            if value is None:
                continue
            note = event.debug_annotations.add()
            note.name_iid = self._keys.number(key)
            if isinstance(value, str):
                note.string_value_iid = self._values.number(value)
            elif isinstance(value, bool):
                note.bool_value = value
            else:
                note.int_value = value

    def _add_texts(self, packet: Any) -> None:
        """The texts, which must come before the packets that name them by number."""
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = (
            packet.SEQ_INCREMENTAL_STATE_CLEARED | packet.SEQ_NEEDS_INCREMENTAL_STATE
        )
        texts = packet.interned_data
        for name, number in self._names.numbers.items():
            texts.event_names.add(iid=number, name=name)
        for key, number in self._keys.numbers.items():
            texts.debug_annotation_names.add(iid=number, name=key)
        for value, number in self._values.numbers.items():
            texts.debug_annotation_string_values.add(iid=number, str=value.encode())


def trace_format() -> "perfetto_trace_pb2":
    """The messages of a trace. Raises MissingPackageError without perfetto."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise MissingPackageError(_INSTALL) from None
    return perfetto_trace_pb2


# Writes a module's memory as a trace that Perfetto shows: values over time, bytes as counters.

ENDINGS = (".pftrace", ".perfetto-trace")
# A value of at least this part of the peak has a place of its own, and so have the largest ones.
_LARGE = 0.001
_LARGEST = 48
# A reader can look through this many lanes; with more, small values have lanes of their own.
_FEW_LANES = 40
_CATEGORIES = {
    "argument": "arguments",
    "output": "outputs",
    "constant": "constants",
    "other": "other allocations",
}
_NO_PASS = "not known"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class ExportedTrace:
    """A trace that was written: its path, and how many values and memory spaces it shows."""

    path: Path
    values: int
    spaces: int

    def _repr_html_(self) -> str:
        size = self.path.stat().st_size if self.path.exists() else None
        figures = [("values", self.values), ("memory_spaces", self.spaces), ("size_bytes", size)]
        return figures_table(str(self.path), figures)


def export_trace(
    store: Store, module: str | int, file: str | os.PathLike[str], run: str | None = None
) -> ExportedTrace:
    """Write a module, its latest or that of a run, as a trace for Perfetto.

    A position of the schedule is a microsecond. The file is written whole or not at all. Raises
    UsageError, FileError and MissingPackageError.
    """
    path = Path(file)
    require_place(store, path)
    trace = TraceFile()
    found = find_module(store, module, run)
    buffers = store.rows(statement("trace.buffers"), [found.module_id]).to_pylist()
    if not buffers:
        raise UsageError(
            f"{found.caption} has no live ranges: nothing is known over time", "module"
        )
    steps = store.rows(statement("trace.steps"), [found.module_id]).to_pylist()
    _draw_schedule(trace, steps)
    instructions = {row["start_time"]: row["instruction"] for row in steps}
    spaces = module_spaces(store, found.module_id, found.dump_id)
    occupied = _occupied(store, found)
    for number, space in spaces.items():
        there = [row for row in buffers if row["memory_space"] == number]
        drawn = _Space(trace, space, there, occupied.get(number, []))
        drawn.draw(instructions.get(space.peak_time), _passes(store, found, space))
    with whole_file(path) as partial:
        trace.save(partial)
    return ExportedTrace(path, len(buffers), len(spaces))


def _occupied(store: Store, found: FoundModule) -> dict[int, list[Row]]:
    """By memory space, since when how much is occupied."""
    rows = store.rows(
        "SELECT memory_space, start_time, occupied_bytes FROM occupancy WHERE module_id = $1"
        " ORDER BY memory_space, start_time",
        [found.module_id],
    ).to_pylist()
    return {space: list(steps) for space, steps in groupby(rows, lambda row: row["memory_space"])}


def _passes(store: Store, found: FoundModule, space: Space) -> Stacks | None:
    """Which pass the occupied bytes belong to over time; None if no pass is known."""
    buffers = module_buffers(store, found.module_id, space.memory_space)
    passes = buffers["pass"].to_pylist()
    if space.schedule_length is None or space.peak_bytes is None or not any(passes):
        return None
    names = [*filter(set(passes).__contains__, PASSES), *([_NO_PASS] if None in passes else [])]
    codes = np.array([names.index(name or _NO_PASS) for name in passes])
    pieces = counted_pieces(buffers, space.schedule_length)
    return stacked(pieces, codes, names)


def _draw_schedule(trace: TraceFile, steps: Sequence[Row]) -> None:
    """The passes of the schedule, and below them its instructions."""
    if not steps:
        return
    passes = trace.track("instructions", description="a position of the schedule is 1 µs")
    for name, found in groupby(steps, lambda row: row["pass"]):
        group = list(found)
        if name is not None:
            trace.slice(passes, group[0]["start_time"], group[-1]["start_time"], name)
    track = trace.track("one by one", passes)
    for row in steps:
        said = {key: row[key] for key in ("instruction", "op_name", "source")}
        name = row["opcode"] or row["instruction"]
        trace.slice(track, row["start_time"], row["start_time"], name, said)


class _Space:
    """The tracks of a memory space."""

    def __init__(
        self, trace: TraceFile, space: Space, buffers: Sequence[Row], occupied: Sequence[Row]
    ) -> None:
        self.trace = trace
        self.space = space
        self.buffers = buffers
        self.occupied = occupied
        self.about = "≈ " if space.is_estimated else ""
        self.large_bytes = _LARGE * (space.peak_bytes or 0)

    def draw(self, peak_instruction: str | None, passes: Stacks | None) -> None:
        """The occupied bytes, and below them what they are made of."""
        peak = self._peak(peak_instruction)
        root = self.trace.track(self._title(), is_counter=True, description=f"occupied: {peak}")
        times = [row["start_time"] for row in self.occupied]
        self.trace.count(root, times, [row["occupied_bytes"] for row in self.occupied])
        if self.space.peak_time is not None:
            self.trace.instant(self.trace.track("peak", root), self.space.peak_time, peak)
        if passes is not None:
            self._count_passes(root, passes)
        fixed = 0
        for category, title in _CATEGORIES.items():
            rows = [row for row in self.buffers if row["category"] == category]
            if rows:
                fixed += self._draw_fixed(root, title, rows)
        temps = [row for row in self.buffers if row["category"] == "temp"]
        if not temps:
            return
        if fixed:
            root = self.trace.track("temps", root, is_counter=True)
            left = [row["occupied_bytes"] - fixed for row in self.occupied]
            self.trace.count(root, times, left)
        by_allocation = sorted(temps, key=lambda row: row["allocation_index"])
        groups = groupby(by_allocation, lambda row: row["allocation_index"])
        listed = [(index, list(rows)) for index, rows in groups]
        for index, rows in listed:
            parent = root if len(listed) == 1 else self.trace.track(f"allocation {index}", root)
            self._draw_temps(parent, rows)

    def _title(self) -> str:
        title = f"memory space {self.space.memory_space}"
        name = "" if self.space.name == title else f" ({self.space.name})"
        return f"{self.about}{title}{name}"

    def _peak(self, instruction: str | None) -> str:
        """How full the space gets, and where."""
        if self.space.peak_bytes is None:
            return "how full it gets is not known"
        where = "" if instruction is None else f" at {instruction}"
        return f"peak {self._human(self.space.peak_bytes)}{where}"

    def _count_passes(self, parent: int, passes: Stacks) -> None:
        """A counter a pass, with a value wherever it changes."""
        group = self.trace.track("by pass", parent)
        # What ends with the schedule is there to the end of the picture.
        within = passes.times < (self.space.schedule_length or 0)
        for name, sums in zip(passes.names, passes.sums[:, within], strict=True):
            changed = np.flatnonzero(np.diff(sums, prepend=-1))
            track = self.trace.track(name, group, is_counter=True)
            self.trace.count(track, passes.times[changed].tolist(), sums[changed].tolist())

    def _draw_fixed(self, parent: int, title: str, rows: Sequence[Row]) -> int:
        """What is there throughout: the largest on their own, the small ones as one."""
        total = sum(row["size_bytes"] for row in rows)
        track = self.trace.track(title, parent, is_counter=True)
        self.trace.count(track, [rows[0]["start_time"]], [total])
        ordered = sorted(rows, key=lambda row: (-row["size_bytes"], row["allocation_index"]))
        own = sum(row["size_bytes"] >= self.large_bytes for row in ordered)
        own = max(own, _LARGEST)
        own = len(ordered) if own >= len(ordered) - 1 else own
        for row in ordered[:own]:
            name = f"{self._name(row)}, {self._human(row['size_bytes'])}"
            lane = self.trace.track(name, track)
            self._draw(lane, row)
        small = ordered[own:]
        if small:
            size = sum(row["size_bytes"] for row in small)
            name = f"{len(small)} smaller {title}"
            said = {"count": len(small), "size_bytes": size, "size": self._human(size)}
            lane = self.trace.track(name, track)
            self.trace.slice(lane, small[0]["start_time"], small[0]["end_time"], name, said)
        return int(total)

    def _draw_temps(self, parent: int, rows: Sequence[Row]) -> None:
        """The values of a temp allocation, in lanes; small ones apart if there are many."""
        starts, ends = ([row[name] for row in rows] for name in ("start_time", "end_time"))
        if most_at_once(starts, ends) <= _FEW_LANES:
            self._draw_lanes(parent, rows)
            return
        small = [row for row in rows if row["size_bytes"] < self.large_bytes]
        self._draw_lanes(parent, [row for row in rows if row["size_bytes"] >= self.large_bytes])
        if small:
            title = f"{len(small)} values below {human_bytes(self.large_bytes)}"
            self._draw_lanes(self.trace.track(title, parent), small)

    def _draw_lanes(self, parent: int, rows: Sequence[Row]) -> None:
        columns = (
            [row[name] for row in rows] for name in ("start_time", "end_time", "offset_bytes")
        )
        for number, lane in enumerate(lanes_of(*columns), 1):
            lowest = human_bytes(rows[lane[0]]["offset_bytes"])
            track = self.trace.track(f"lane {number}, from {lowest}", parent)
            for place in lane:
                self._draw(track, rows[place])

    def _draw(self, track: int, row: Row) -> None:
        said = {
            "size": self._human(row["size_bytes"]),
            "size_bytes": row["size_bytes"],
            "padding_bytes": row["padding_bytes"],
            "shape": row["shape"],
            "value": row["value"],
            "opcode": row["opcode"],
            "op_name": row["op_name"],
            "source": row["source"],
            "scope": row["scope"] or None,
            "pass": row["pass"],
            "role": row["role"],
            "is_guess": row["is_guess"] or None,
            "readers": row["readers"],
            "last_use_time": row["last_use_time"],
            "allocation_index": row["allocation_index"],
            "offset_bytes": row["offset_bytes"],
            "value_id": row["value_id"],
        }
        shape = row["shape"] or ""
        # A tuple's shape is as long as a paragraph.
        name = (
            self._name(row)
            if shape.startswith("(")
            else f"{self._name(row)} {without_layout(shape)}"
        )
        self.trace.slice(track, row["start_time"], row["end_time"], name.rstrip(), said)

    def _name(self, row: Row) -> str:
        """What a value holds, by which Perfetto colours slices."""
        name = row["op_name"]
        if row["operation"]:
            name = "/".join(filter(None, [row["scope"], row["operation"]]))
        name = name or row["value"] or f"allocation {row['allocation_index']}"
        return f"{name}?" if row["is_guess"] else str(name)

    def _human(self, size: int) -> str:
        return f"{self.about}{human_bytes(size)}"
