"""What a HloProto is, without reading its instructions: its form and its canonical digest.

Protocol buffers write the entries of a map in any order, which varies from one dump of a module
to the next. In the canonical form equal messages are equal bytes. A HloProto has maps in two
places: the schedule, and frontend attributes of the module and of its instructions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from ...xla.errors import DumpError
from .wire import BYTES, content, fields, varint

# Fields of HloProto.
_MODULE, _ASSIGNMENT = 1, 3
# Fields of HloModuleProto.
_NAME, _COMPUTATIONS, _MODULE_ID, _SCHEDULE, _PARAMETER_SHARDINGS, _FRAMES = 1, 3, 5, 7, 14, 17
_ALLOCATIONS = 3  # of BufferAssignmentProto
_OPCODE = re.compile(rb"[a-z][a-z0-9\-]*")
_NOT_ONE = "not a HloProto"
# Tags of fields that hold frontend attributes: 68 of an instruction, 19 of the module.
_TAGS = (b"\xa2\x04", b"\x9a\x01")
_ENTRIES, _KEY, _VALUE = 1, 1, 2
_PIECE = 1 << 18
_LONGEST = 1 << 20
# The header of a Riegeli file, and of each of its blocks.
_RIEGELI = bytes.fromhex("83af70d10d884a3f0000000000000000")
_BLOCK_BYTES, _BLOCK_HEADER_BYTES = 1 << 16, 24
# Tags of HloProto: bytes of its fields 1 and 3. The module's first field is its name.
_MODULE_TAG, _NAME_TAG, _ASSIGNMENT_TAG = b"\x0a", b"\x0a", b"\x1a"
_MODULE_FIELDS = frozenset((1, 3))  # name and computations
_ASSIGNMENT_FIELDS = frozenset((1, 2, 3, 4, 5))
_LONGEST_LENGTH = 5  # bytes of a length below 2 GiB

Extent = tuple[int, int]


@dataclass(frozen=True)
class ProtoIdentity:
    """What a HloProto is.

    content: a digest that equal messages share: neither the order of maps nor the module's number
    counts, which vary from one dump of a module to the next. has_assignment:
    False of an earlier stage, and of a program that came from JAX's compilation cache.
    is_scheduled: False of an early stage. beside_text: a digest of what HLO text may lack, the
    stack frames and the shardings of arguments.
    """

    module_name: str
    content: str
    has_assignment: bool
    is_scheduled: bool
    beside_text: str


@dataclass
class HloProtoExtents:
    """Where the parts of a HloProto start and end.

    schedule, frames: empty if the module has none; shardings: where each argument's sharding is,
    if the module was partitioned; skipped: where the module's fields lie that do not count for
    its identity; assignment: None if the file has none.
    """

    module: Extent
    name: str = ""
    first_computation: Extent | None = None
    schedule: Extent | None = None
    frames: Extent = (0, 0)
    shardings: list[Extent] = field(default_factory=list)
    skipped: list[Extent] = field(default_factory=list)
    assignment: Extent | None = None


def identify_hlo_proto(data: bytes | memoryview) -> ProtoIdentity:
    """Identify a HloProto without reading its instructions.

    Raises DumpError if the bytes are not one: a memory usage report, for example.
    """
    extents = find_module(data)
    return ProtoIdentity(
        extents.name,
        _content_digest(data, extents),
        _has_allocations(data, extents.assignment),
        extents.schedule is not None,
        _beside_text(data, extents),
    )


def _beside_text(data: bytes | memoryview, extents: HloProtoExtents) -> str:
    digest = sha256()
    for start, end in (extents.frames, *extents.shardings):
        digest.update((end - start).to_bytes(8, "little"))
        digest.update(memoryview(data)[start:end])
    return digest.hexdigest()


def find_module(data: bytes | memoryview) -> HloProtoExtents:
    """Find the parts of a HloProto by their form. Raises DumpError if the bytes are not one."""
    if not len(data):
        raise DumpError("the file is empty: dump the program again")
    outer: dict[int, Extent] = {}
    for found in fields(data, 0, len(data)):
        number, kind, first, end = found
        if number in (_MODULE, _ASSIGNMENT):
            if number in outer or kind != BYTES:
                raise DumpError(
                    f"{_NOT_ONE}: field {number}, which ends at byte {end}, is no single message "
                    "(a profile's name must end with .xplane.pb)"
                )
            outer[number] = first, end
    if _MODULE not in outer:
        raise DumpError(f"{_NOT_ONE}: the file has no module")
    module = outer[_MODULE]
    parts = _walked(data, module)
    if not parts.name or parts.first_computation is None:
        raise DumpError(f"{_NOT_ONE}: the module at byte {module[0]} has no name or computations")
    _check_form(data, parts.first_computation)
    parts.assignment = outer.get(_ASSIGNMENT)
    return parts


def _has_allocations(data: bytes | memoryview, assignment: Extent | None) -> bool:
    """Whether a buffer assignment is there and holds anything. Raises DumpError."""
    if assignment is None:
        return False
    return any(found[0] == _ALLOCATIONS for found in fields(data, *assignment))


def _walked(data: bytes | memoryview, module: Extent) -> HloProtoExtents:
    parts = HloProtoExtents(module)
    at = module[0]
    for found in fields(data, *module):
        number, end = found[0], found[3]
        if number == _COMPUTATIONS:
            parts.first_computation = parts.first_computation or content(found)
        elif number == _NAME:
            parts.name = _text(data, content(found))
        elif number == _PARAMETER_SHARDINGS:
            parts.shardings.append(content(found))
        elif number == _FRAMES:
            parts.frames = content(found)
        elif number == _SCHEDULE:
            parts.schedule = content(found)
        if number in (_MODULE_ID, _SCHEDULE):
            if len(parts.skipped) == 2:
                raise DumpError(f"{_NOT_ONE}: field {number} again, which ends at byte {end}")
            parts.skipped.append((at, end))
        at = end
    return parts


def _text(data: bytes | memoryview, extent: Extent) -> str:
    try:
        return bytes(data[slice(*extent)]).decode()
    except UnicodeDecodeError as error:
        raise DumpError(f"{_NOT_ONE}: no text at byte {extent[0] + error.start}") from None


def _check_form(data: bytes | memoryview, computation: Extent) -> None:
    """Raise DumpError unless the first computation begins as one does.

    A memory usage report has messages at the same places, but other fields in them.
    """
    wrong = f"{_NOT_ONE}: the computation at byte {computation[0]} has no instructions"
    name = instruction = None
    for found in fields(data, *computation):
        if found[0] == 1 and name is None:
            name = _text(data, content(found))
        if found[0] == 2:
            instruction = content(found)
            break
    if not name or instruction is None:
        raise DumpError(wrong)
    kinds = {found[0]: found for found in fields(data, *instruction)}
    if any(number not in kinds or kinds[number][1] != BYTES for number in (1, 2, 3)):
        raise DumpError(wrong)
    if not _OPCODE.fullmatch(bytes(data[slice(*content(kinds[2]))])):
        raise DumpError(wrong)


def _content_digest(data: bytes | memoryview, extents: HloProtoExtents) -> str:
    """A digest that equal messages share; the module's number does not count.

    Raises DumpError.
    """
    view = memoryview(data)
    digest = sha256()
    at = 0
    pieces = [(extent, b"") for extent in extents.skipped]
    pieces += [(extent, text) for extent, text in _sorted_maps(data, extents.skipped)]
    for (start, end), text in sorted(pieces):
        digest.update(view[at:start])
        digest.update(text)
        at = end
    digest.update(view[at:])
    schedule = extents.schedule or (0, 0)
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
    for entry in fields(data, start, end):
        if entry[:2] != (_ENTRIES, BYTES):
            return []
        inner = [(number, kind) for number, kind, _, _ in fields(data, *content(entry))]
        if inner != [(_KEY, BYTES), (_VALUE, BYTES)]:
            return []
        found.append(bytes(data[at : entry[3]]))
        at = entry[3]
    return found


def find_hlo_proto(data: bytes, module_name: str) -> bytes | None:
    """The HloProto in a TPU executable as `runtime_executable().serialize()` gives it.

    The format is libtpu's own and no promise, so the HloProto is known by its form alone: a
    module of the right name, followed by a buffer assignment. It stands there as it is, but newer
    versions write a Riegeli file, where a header stands before every 64 KiB. None if there is no
    such HloProto.
    """
    for plain in _contents(data):
        for at in _places(plain, module_name.encode()):
            if found := _hlo_proto(plain, at):
                return found
    return None


def _contents(data: bytes) -> Iterator[bytes]:
    """The bytes as they are, and those of a Riegeli file in them without its headers."""
    yield data
    start = data.find(_RIEGELI)
    if start >= 0:
        blocks = range(start, len(data), _BLOCK_BYTES)
        yield b"".join(data[at + _BLOCK_HEADER_BYTES : at + _BLOCK_BYTES] for at in blocks)


def _places(data: bytes, name: bytes) -> Iterator[int]:
    """Where a message starts whose first field is this name."""
    first = _NAME_TAG + bytes([len(name) & 0x7F | 0x80, len(name) >> 7])
    if len(name) < 0x80:
        first = _NAME_TAG + bytes([len(name)])
    at = data.find(first + name)
    while at >= 0:
        yield at
        at = data.find(first + name, at + 1)


def _hlo_proto(data: bytes, module: int) -> bytes | None:
    """The HloProto whose module starts there, if it is one."""
    for start in range(module - 2, max(module - 2 - _LONGEST_LENGTH, -1), -1):
        if data[start : start + 1] != _MODULE_TAG:
            continue
        try:
            length, first = varint(data, start + 1, module)
            end = module + length
            if first != module or data[end : end + 1] != _ASSIGNMENT_TAG:
                continue
            length, assignment = varint(data, end + 1, len(data))
            names = {number for number, *_ in fields(data, module, end)}
            held = {n for n, *_ in fields(data, assignment, assignment + length)}
        except DumpError:
            continue
        whole = assignment + length <= len(data)
        if whole and names >= _MODULE_FIELDS and held and held <= _ASSIGNMENT_FIELDS:
            return data[start : assignment + length]
    return None
