"""A HloProto's canonical form: equal messages are equal bytes.

Protocol buffers write the entries of a map in any order, which varies from one dump of a module
to the next. A HloProto has maps in two places: the schedule, and frontend attributes of the
module and of its instructions.
"""

from hashlib import sha256

import numpy as np

from ...xla.errors import DumpError
from .proto_module import SCHEDULE, Extent, ProtoModule
from .wire_scalar import BYTES, content, fields, varint

# Tags of fields that hold frontend attributes: 68 of an instruction, 19 of the module.
_TAGS = (b"\xa2\x04", b"\x9a\x01")
_ENTRIES, _KEY, _VALUE = 1, 1, 2
_PIECE = 1 << 18
_LONGEST = 1 << 20


def content_digest(data: bytes | memoryview, module: ProtoModule) -> str:
    """A digest that equal messages share; the module's number does not count.

    Raises DumpError.
    """
    view = memoryview(data)
    digest = sha256()
    at = 0
    pieces = [(extent, b"") for extent in module.skipped]
    pieces += [(extent, text) for extent, text in _sorted_maps(data, module.skipped)]
    for (start, end), text in sorted(pieces):
        digest.update(view[at:start])
        digest.update(text)
        at = end
    digest.update(view[at:])
    schedule = module.single.get(SCHEDULE, (0, 0))
    for entry in sorted(bytes(view[slice(*content(f))]) for f in fields(data, *schedule)):
        digest.update(len(entry).to_bytes(8, "little"))
        digest.update(entry)
    return digest.hexdigest()


def _sorted_maps(data: bytes | memoryview, skipped: list[Extent]) -> list[tuple[Extent, bytes]]:
    """Each map of attributes with several entries, and its entries in order.

    The maps are found by their tags, because walking to each instruction takes long. Other
    bytes that look like a map are sorted too, which keeps equal messages equal.
    """
    found: list[tuple[Extent, bytes]] = []
    after, room = 0, len(data)
    for at in _tagged(data):
        if at < after or any(start <= at < end for start, end in skipped):
            continue
        try:
            length, start = varint(data, at + 2, len(data))
            end = start + length
            if end > len(data) or not length:
                continue
            # Bytes made to look like maps within maps must not cost the square of their length.
            room -= min(length, _LONGEST)
            if length > _LONGEST or room < 0:
                continue
            entries = _entries(data, start, end)
        except DumpError:
            continue
        if len(entries) > 1:
            found.append(((start, end), b"".join(sorted(entries))))
            after = end
    return found


def _tagged(data: bytes | memoryview) -> list[int]:
    """Where a tag of frontend attributes stands before what is not empty."""
    whole = np.frombuffer(data, np.uint8)
    places = []
    for start in range(0, max(0, len(whole) - 2), _PIECE):
        piece = whole[start : start + _PIECE + 2]
        for tag in _TAGS:
            is_tag = (piece[:-2] == tag[0]) & (piece[1:-1] == tag[1]) & (piece[2:] != 0)
            places.append(np.flatnonzero(is_tag) + start)
    joined = np.unique(np.concatenate(places)) if places else np.array([], np.int64)
    return [int(at) for at in joined]


def _entries(data: bytes | memoryview, start: int, end: int) -> list[bytes]:
    """The entries of a map from text to text, with their tags; none if it is not one."""
    found, at = [], start
    for field in fields(data, start, end):
        if field[:2] != (_ENTRIES, BYTES):
            return []
        inner = [(number, kind) for number, kind, _, _ in fields(data, *content(field))]
        if inner != [(_KEY, BYTES), (_VALUE, BYTES)]:
            return []
        found.append(bytes(data[at : field[3]]))
        at = field[3]
    return found
