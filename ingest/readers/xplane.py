"""Reader of XProf's XSpace (`*.xplane.pb`): the modules that ran, as HloProtos.

A file of a session consists of planes. The plane `/host:metadata` has an entry for each module
that ran, named `jit_step(6)` after the module and its program id, with the whole HloProto. The
planes of devices describe the devices. The lines of a plane are skipped: they are the events, and
nearly all bytes of the file, which the package protobuf would copy to memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

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


class StoredBytes(Protocol):
    """Bytes that are read when they are needed."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self) -> bytes:
        """The bytes. Raises DumpError."""


class Forward(Protocol):
    """A file's bytes, once, from start to end. All methods raise DumpError at the end."""

    position: int

    @property
    def ended(self) -> bool:
        """Whether there are no more bytes."""

    def read(self, size: int) -> bytes:
        """The next bytes."""

    def skip(self, size: int) -> None:
        """Skip the next bytes."""

    def keep(self, size: int) -> StoredBytes:
        """Skip the next bytes, which are read later."""


class Device(NamedTuple):
    """A device of the session: tpu or gpu, with the facts on its plane."""

    platform: str
    kind: str | None = None
    memory_bytes: int | None = None


@dataclass
class XSpace:
    """The content of a file.

    Attributes:
        modules: by their names in the session.
        error: the damage of the file; the modules and devices are then those of the planes before.
    """

    modules: list[tuple[str, StoredBytes]] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    error: DumpError | None = None


def read_xspace(data: Forward) -> XSpace:
    """Read the modules and devices of a file. Never raises DumpError, see `XSpace.error`."""
    space = XSpace()
    has_planes = False
    try:
        for part in _fields(data, None):
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


def _fields(data: Forward, message_end: int | None) -> Iterator[_Field]:
    """The fields of a message that ends at a position; None is the end of the file.

    The content that the caller does not read is skipped.
    """
    while data.position < message_end if message_end is not None else not data.ended:
        start = data.position
        tag = _read_varint(data)
        number, wire_type = tag >> 3, tag & 7
        value = _read_varint(data) if wire_type in (VARINT, BYTES) else 0
        if wire_type not in (VARINT, BYTES, *FIXED_SIZES):
            raise DumpError(f"it is damaged at byte {start}: no field starts there")
        size = value if wire_type == BYTES else FIXED_SIZES.get(wire_type, 0)
        end = data.position + size
        if number == 0 or (message_end is not None and end > message_end):
            raise DumpError(f"it is damaged at byte {start}: a field is longer than what holds it")
        yield _Field(number, wire_type, value, end)
        data.skip(end - data.position)


def _read_varint(data: Forward) -> int:
    start = data.position
    value = 0
    for shift in range(0, 70, 7):
        byte = data.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise DumpError(f"it is damaged at byte {start}: a number has no end")


def _read_short(data: Forward, end: int) -> bytes:
    """The bytes up to a position: a name or a small message."""
    size = end - data.position
    if size > _MAX_NAME_BYTES:
        raise DumpError(f"it is damaged at byte {data.position}: a name has {size} bytes")
    return data.read(size)


class _Statistic(NamedTuple):
    """A statistic of a module that is bytes; the name of its id is on the plane."""

    module_name: bytes
    name_id: int
    content: StoredBytes


def _read_plane(data: Forward, end: int, space: XSpace) -> None:
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
            plane_name = _read_short(data, part.end)
        elif part.number == _EVENT_METADATA and is_metadata:
            modules += _read_module(data, part.end)
        elif part.number == _STAT_METADATA and (is_metadata or is_device):
            entry = _read_message(data, part.end, "StatMetadataEntry")
            names[entry.value.id] = entry.value.name
        elif part.number == _PLANE_STATS and is_device and part.value <= _MAX_NAME_BYTES:
            device_statistics.append(_read_message(data, part.end, "XStat"))
        if len(modules) > _MAX_MODULES or max(len(names), len(device_statistics)) > _MAX_NAMES:
            raise DumpError(f"it is damaged before byte {part.end}: it names too many things")
    for statistic in modules:
        if names.get(statistic.name_id) in _HLO_PROTO:
            name = statistic.module_name.decode(errors="backslashreplace")
            space.modules.append((name, statistic.content))
    device = _DEVICE_PLANE.match(plane_name)
    if device is not None:
        platform = device["platform"].decode().lower()
        space.devices.append(_device(platform, device_statistics, names))


def _read_module(data: Forward, end: int) -> Iterator[_Statistic]:
    """The statistics that are bytes in an entry of event metadata; a module has one."""
    for part in _fields(data, end):
        if part.number != _ENTRY_VALUE or part.wire_type != BYTES:
            continue
        name = b""
        for inner in _fields(data, part.end):
            if inner.number == _EVENT_NAME and inner.wire_type == BYTES:
                name = _read_short(data, inner.end)
            elif inner.number == _EVENT_STATS and inner.wire_type == BYTES:
                name_id = 0
                for stat in _fields(data, inner.end):
                    if stat.number == _STAT_METADATA_ID and stat.wire_type == VARINT:
                        name_id = stat.value
                    elif stat.number == _STAT_BYTES and stat.wire_type == BYTES and stat.value:
                        yield _Statistic(name, name_id, data.keep(stat.value))


def _read_message(data: Forward, end: int, type_: str) -> Any:
    start = data.position
    try:
        return parse(type_, _read_short(data, end))
    except DecodeError:
        raise DumpError(
            f"it is damaged from byte {start} on: a {type_} is damaged: dump the program again"
        ) from None


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
