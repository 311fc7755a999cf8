"""Writes tracks, slices and counters as a Perfetto trace.

A trace is a list of packets. Texts that repeat are written once and then named by number, and
the packets of a trace are deflated together, which the format provides for.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..schema.errors import MissingPackageError

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

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
