"""Reader of XProf's XSpace (`*.xplane.pb`): the modules that ran, as HloProtos.

A file of a session consists of planes. The plane `/host:metadata` has an entry for each module
that ran, named `jit_step(6)` after the module and its program id, with the whole HloProto. The
planes of devices describe the devices. The lines of a plane are skipped: they are the events, and
nearly all bytes of the file, which the package protobuf would copy to memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import SEEK_END
from typing import Any, BinaryIO, Final, NamedTuple

from google.protobuf.message import DecodeError

from ...xla.errors import LARGEST_SIZE, DumpError
from .proto_schema import parse
from .wire import BYTES, FIXED_SIZES, VARINT

_METADATA_PLANE: Final = b"/host:metadata"
_DEVICE_PLANE: Final = re.compile(rb"^/device:(?P<platform>TPU|GPU):\d+")
# XProf accepts both names of the statistic that is an HloProto.
_HLO_PROTO: Final = (b"Hlo Proto", b"HLO Proto")
_DEVICE_KIND: Final = b"device_type_string"
_DEVICE_MEMORY: Final = b"memory_size"
# Names are short and modules are few, except in a damaged file.
_MAX_NAME_BYTES: Final = 1 << 16
_MAX_MODULES: Final = 1 << 16
_MAX_NAMES: Final = 1 << 20
# Fields of XSpace, XPlane, an entry of XPlane.event_metadata, XEventMetadata, and XStat.
_PLANES: Final = 1
_PLANE_NAME, _EVENT_METADATA, _STAT_METADATA, _PLANE_STATS = 2, 4, 5, 6
_ENTRY_VALUE: Final = 2
_EVENT_NAME, _EVENT_STATS = 2, 5
_STAT_METADATA_ID, _STAT_BYTES = 1, 6


class Device(NamedTuple):
    """A device of the session: tpu or gpu, with the facts on its plane."""

    platform: str
    kind: str | None = None
    memory_bytes: int | None = None


class Module(NamedTuple):
    """A module by its name in the session, and where the bytes of its HloProto are in the file."""

    name: str
    start: int
    size: int


@dataclass
class XSpace:
    """The content of a file.

    Attributes:
        error: the damage of the file; the modules and devices are then those of the planes before.
    """

    modules: list[Module] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    error: DumpError | None = None


def read_xspace(data: BinaryIO) -> XSpace:
    """Read the modules and devices of a file. Never raises DumpError, see `XSpace.error`."""
    space = XSpace()
    size = data.seek(0, SEEK_END)
    data.seek(0)
    has_planes = False
    try:
        for part in _fields(data, size):
            if part.number == _PLANES and part.wire_type == BYTES:
                has_planes = True
                _read_plane(data, part.end, space)
        if not has_planes:
            raise DumpError("it holds no planes, so it is not a profile of XProf")
    except DumpError as error:
        space.error = error
    return space


class _Field(NamedTuple):
    """A field of a message, whose content is not read yet.

    Attributes:
        value: of a varint.
        end: the position after the field.
    """

    number: int
    wire_type: int
    value: int
    end: int


def _fields(data: BinaryIO, message_end: int) -> Iterator[_Field]:
    """The fields of a message up to a position; the content that the caller leaves is skipped."""
    while (start := data.tell()) < message_end:
        tag = _read_varint(data)
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or wire_type not in (VARINT, BYTES, *FIXED_SIZES):
            raise DumpError(f"it is damaged at byte {start}: no field starts there")
        value = _read_varint(data) if wire_type in (VARINT, BYTES) else 0
        end = data.tell() + (value if wire_type == BYTES else FIXED_SIZES.get(wire_type, 0))
        if end > message_end:
            raise DumpError(f"it is cut short or damaged at byte {message_end}: copy it again")
        yield _Field(number, wire_type, value, end)
        data.seek(end)


def _read_varint(data: BinaryIO) -> int:
    start = data.tell()
    value = 0
    for shift in range(0, 70, 7):
        byte = _read(data, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise DumpError(f"it is damaged at byte {start}: a number has no end")


def _read(data: BinaryIO, size: int) -> bytes:
    """The next bytes."""
    content = data.read(size)
    if len(content) < size:
        raise DumpError(f"it is cut short at byte {data.tell()}: copy it again")
    return content


class _Statistic(NamedTuple):
    """A statistic of a module that is bytes; the name of its id is on the plane."""

    module_name: bytes
    name_id: int
    start: int
    size: int


def _read_plane(data: BinaryIO, end: int, space: XSpace) -> None:
    """Read a plane of metadata or of a device. Its content counts if it is read to its end."""
    plane_name = b""
    modules: list[_Statistic] = []
    device_statistics: list[Any] = []
    names: dict[int, bytes] = {}
    for part in _fields(data, end):
        is_metadata = plane_name == _METADATA_PLANE
        is_device = _DEVICE_PLANE.match(plane_name) is not None
        if part.wire_type != BYTES:
            continue
        if part.number == _PLANE_NAME:
            plane_name = _read_short(data, part)
        elif part.number == _EVENT_METADATA and is_metadata:
            modules += _read_module(data, part.end)
        elif part.number == _STAT_METADATA and (is_metadata or is_device):
            entry = _read_message(data, part, "StatMetadataEntry")
            names[entry.value.id] = entry.value.name
        elif part.number == _PLANE_STATS and is_device and part.value <= _MAX_NAME_BYTES:
            device_statistics.append(_read_message(data, part, "XStat"))
        if len(modules) > _MAX_MODULES or max(len(names), len(device_statistics)) > _MAX_NAMES:
            raise DumpError(f"it is damaged before byte {part.end}: it names too many things")
    for module_name, name_id, start, size in modules:
        if names.get(name_id) in _HLO_PROTO:
            name = module_name.decode(errors="backslashreplace")
            space.modules.append(Module(name, start, size))
    device = _DEVICE_PLANE.match(plane_name)
    if device is not None:
        platform = device["platform"].decode().lower()
        space.devices.append(_device(platform, device_statistics, names))


def _read_module(data: BinaryIO, end: int) -> Iterator[_Statistic]:
    """The statistics that are bytes in an entry of event metadata; a module has one."""
    for part in _fields(data, end):
        if part.number != _ENTRY_VALUE or part.wire_type != BYTES:
            continue
        name = b""
        for inner in _fields(data, part.end):
            if inner.number == _EVENT_NAME and inner.wire_type == BYTES:
                name = _read_short(data, inner)
            elif inner.number == _EVENT_STATS and inner.wire_type == BYTES:
                name_id = 0
                for stat in _fields(data, inner.end):
                    if stat.number == _STAT_METADATA_ID and stat.wire_type == VARINT:
                        name_id = stat.value
                    elif stat.number == _STAT_BYTES and stat.wire_type == BYTES and stat.value:
                        yield _Statistic(name, name_id, data.tell(), stat.value)


def _read_short(data: BinaryIO, part: _Field) -> bytes:
    """The bytes of a field that is a name or a small message."""
    if part.value > _MAX_NAME_BYTES:
        raise DumpError(f"it is damaged before byte {part.end}: a name has {part.value} bytes")
    return _read(data, part.value)


def _read_message(data: BinaryIO, part: _Field, type_: str) -> Any:
    content = _read_short(data, part)
    try:
        return parse(type_, content)
    except DecodeError:
        raise DumpError(f"it is damaged before byte {part.end}: a {type_} is damaged") from None


def _device(platform: str, statistics: list[Any], names: dict[int, bytes]) -> Device:
    kind = memory_bytes = None
    for statistic in statistics:
        name = names.get(statistic.metadata_id)
        if name == _DEVICE_KIND:
            text = statistic.str_value or names.get(statistic.ref_value, b"")
            kind = text.decode(errors="backslashreplace") or None
        elif name == _DEVICE_MEMORY:
            number = statistic.uint64_value or statistic.int64_value
            memory_bytes = number if 0 < number <= LARGEST_SIZE else memory_bytes
    return Device(platform, kind, memory_bytes)
