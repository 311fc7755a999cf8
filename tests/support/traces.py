"""Reads a Perfetto trace back, as Perfetto does: texts by number, slices by begin and end."""

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace


@dataclass
class Slice:
    name: str
    start: int
    end: int
    said: dict[str, Any]


@dataclass
class Track:
    """A track; times are positions of the schedule, and the end of a slice is inclusive."""

    name: str
    path: tuple[str, ...]
    is_counter: bool
    description: str
    rank: int
    slices: list[Slice] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    instants: list[tuple[int, str]] = field(default_factory=list)


def read_trace(file: Path) -> list[Track]:
    """The tracks in the order that Perfetto shows them.

    Fails where Perfetto would lose something: a text or track that is not declared, a slice that
    does not end or that overlaps another one of its track.
    """
    outer = Trace.FromString(file.read_bytes())
    (packed,) = outer.packet
    packets = Trace.FromString(zlib.decompress(packed.compressed_packets)).packet
    first = packets[0]
    assert first.sequence_flags & first.SEQ_INCREMENTAL_STATE_CLEARED
    names, keys, values = (
        {text.iid: text for text in texts}
        for texts in (
            first.interned_data.event_names,
            first.interned_data.debug_annotation_names,
            first.interned_data.debug_annotation_string_values,
        )
    )
    tracks: dict[int, Track] = {}
    open_slices: dict[int, Slice] = {}
    before = 0
    for packet in packets[1:]:
        if packet.HasField("track_descriptor"):
            made = packet.track_descriptor
            parents = tracks[made.parent_uuid].path if made.parent_uuid else ()
            assert made.uuid not in tracks
            assert made.sibling_merge_behavior == made.SIBLING_MERGE_BEHAVIOR_NONE
            tracks[made.uuid] = Track(
                made.name,
                (*parents, made.name),
                made.HasField("counter"),
                made.description,
                made.sibling_order_rank,
            )
            continue
        assert packet.timestamp % 1000 == 0
        time = packet.timestamp // 1000
        assert time >= before
        before = time
        event = packet.track_event
        uuid, track = event.track_uuid, tracks[event.track_uuid]
        assert track.is_counter == (event.type == event.TYPE_COUNTER)
        if event.type == event.TYPE_COUNTER:
            track.counts.append((time, event.counter_value))
        elif event.type == event.TYPE_INSTANT:
            track.instants.append((time, names[event.name_iid].name))
        elif event.type == event.TYPE_SLICE_END:
            ended = open_slices.pop(uuid)
            ended.end = time - 1
            assert ended.end >= ended.start
            track.slices.append(ended)
        else:
            assert uuid not in open_slices, "slices of a track overlap"
            said = {
                keys[note.name_iid].name: value_of(note, values) for note in event.debug_annotations
            }
            open_slices[uuid] = Slice(names[event.name_iid].name, time, -1, said)
    assert open_slices == {}
    return list(tracks.values())


def value_of(note: Any, values: dict[int, Any]) -> Any:
    kind = note.WhichOneof("value")
    found = getattr(note, kind)
    return values[found].str.decode() if kind == "string_value_iid" else found
