"""Reader of XProf's XSpace (`*.xplane.pb`): the modules that ran, as HloProtos.

A file of a session holds planes. The plane `/host:metadata` has an entry per module that ran,
named `jit_step(6)` after the module and its program id, with the whole HloProto. The planes of
devices say what the devices are. All else is passed over unread, above all the lines, which
hold the events and nearly all bytes of the file: the package protobuf would copy them to memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ...xla.errors import LARGEST_SIZE, DumpError
from .proto_schema import UnparsableError, parse
from .wire import BYTES, EIGHT, FOUR, VARINT

Kept = TypeVar("Kept")
_Kept_co = TypeVar("_Kept_co", covariant=True)

_METADATA = b"/host:metadata"
_DEVICE = re.compile(rb"^/device:(?P<platform>TPU|GPU):\d+")
# XProf accepts both names of the statistic that holds an HloProto.
_HLO_PROTO = frozenset((b"Hlo Proto", b"HLO Proto"))
_DEVICE_KIND, _DEVICE_MEMORY = b"device_type_string", b"memory_size"
# Names are short and modules are few: a file that says otherwise is damaged.
_LONGEST_NAME = 1 << 16
_MOST_MODULES = 1 << 16
_MOST_NAMES = 1 << 20


class Forward(Protocol[_Kept_co]):
    """A file's bytes, once, from the start to the end. All methods raise DumpError at the end."""

    position: int

    @property
    def ended(self) -> bool:
        """Whether there are no more bytes."""

    def read(self, size: int) -> bytes:
        """The next bytes."""

    def skip(self, size: int) -> None:
        """Pass over the next bytes."""

    def keep(self, size: int) -> _Kept_co:
        """Pass over the next bytes, which will be read later."""


@dataclass(frozen=True)
class Device:
    """A device of the session: tpu or gpu, with what its plane says of it."""

    platform: str
    kind: str | None = None
    memory_bytes: int | None = None


@dataclass
class XSpace(Generic[Kept]):
    """What a file holds: its modules, by their names in the session, and its devices.

    `error` is what is wrong with the file, if anything is; then these are the modules of the
    planes before it.
    """

    modules: list[tuple[str, Kept]] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    error: DumpError | None = None


class _Field(NamedTuple):
    number: int
    wire: int
    # The number of a varint, or the length of bytes.
    value: int


def read_xspace(data: Forward[Kept]) -> XSpace[Kept]:
    """Read the modules and devices of a file; never raises DumpError, see `XSpace.error`."""
    found: XSpace[Kept] = XSpace()
    planes = 0
    try:
        for part in _fields(data, None):
            if part.number == 1 and part.wire == BYTES:
                planes += 1
                _read_plane(data, data.position + part.value, found)
        if not planes:
            raise DumpError("it holds no planes, so it is not a profile of XProf")
    except DumpError as error:
        found.error = error
    return found


def _fields(data: Forward[Kept], end: int | None) -> Iterator[_Field]:
    """The fields of a message that ends at `end`, else with the file.

    What the caller does not read of a field's bytes is passed over.
    """
    while not data.ended if end is None else data.position < end:
        start = data.position
        tag = _varint(data)
        number, wire = tag >> 3, tag & 7
        value = 0
        if wire in (VARINT, BYTES):
            value = _varint(data)
        elif wire not in (EIGHT, FOUR):
            raise DumpError(f"it is damaged at byte {start}: no field starts there")
        stop = data.position + (value if wire == BYTES else _FIXED.get(wire, 0))
        if number == 0 or (end is not None and stop > end):
            raise DumpError(f"it is damaged at byte {start}: a field is longer than what holds it")
        yield _Field(number, wire, value)
        data.skip(stop - data.position)


_FIXED = {EIGHT: 8, FOUR: 4}


def _varint(data: Forward[Kept]) -> int:
    start = data.position
    value = 0
    for shift in range(0, 70, 7):
        byte = data.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise DumpError(f"it is damaged at byte {start}: a number has no end")


def _name(data: Forward[Kept], size: int) -> bytes:
    if size > _LONGEST_NAME:
        raise DumpError(f"it is damaged at byte {data.position}: a name has {size} bytes")
    return data.read(size)


def _read_plane(data: Forward[Kept], end: int, found: XSpace[Kept]) -> None:
    """Read a plane if it may say something; what it says counts if it is read to its end."""
    name = b""
    modules: list[tuple[bytes, int, Kept]] = []
    statistics: list[Any] = []
    names: dict[int, bytes] = {}
    for part in _fields(data, end):
        is_metadata, device = name == _METADATA, _DEVICE.match(name)
        if part.wire != BYTES:
            continue
        stop = data.position + part.value
        if part.number == 2:
            name = _name(data, part.value)
        elif part.number == 4 and is_metadata:
            modules += _read_entry(data, stop)
        elif part.number == 5 and (is_metadata or device):
            entry = _message(data, part.value, "StatMetadataEntry")
            names[entry.value.id] = entry.value.name
        elif part.number == 6 and device and part.value <= _LONGEST_NAME:
            statistics.append(_message(data, part.value, "XStat"))
        if len(modules) > _MOST_MODULES or max(len(names), len(statistics)) > _MOST_NAMES:
            raise DumpError(f"it is damaged before byte {stop}: it names too many things")
    for module, statistic, kept in modules:
        if names.get(statistic) in _HLO_PROTO:
            found.modules.append((module.decode(errors="backslashreplace"), kept))
    if device := _DEVICE.match(name):
        platform = device["platform"].decode().lower()
        found.devices.append(_device(platform, statistics, names))


def _read_entry(data: Forward[Kept], end: int) -> Iterator[tuple[bytes, int, Kept]]:
    """The name of a map's entry, and each statistic of it that is bytes: its name's id, itself."""
    for part in _fields(data, end):
        if part.number != 2 or part.wire != BYTES:
            continue
        name = b""
        for inner in _fields(data, data.position + part.value):
            if inner.wire != BYTES:
                continue
            if inner.number == 2:
                name = _name(data, inner.value)
            elif inner.number == 5:
                statistic = 0
                for own in _fields(data, data.position + inner.value):
                    if own.number == 1 and own.wire == VARINT:
                        statistic = own.value
                    elif own.number == 6 and own.wire == BYTES and own.value:
                        yield name, statistic, data.keep(own.value)


def _message(data: Forward[Kept], size: int, type_: str) -> Any:
    """The small message in the next bytes."""
    start = data.position
    try:
        return parse(type_, _name(data, size))
    except UnparsableError as error:
        raise DumpError(f"it is damaged from byte {start} on: {error}") from None


def _device(platform: str, statistics: list[Any], names: dict[int, bytes]) -> Device:
    kind = memory = None
    for statistic in statistics:
        name = names.get(statistic.metadata_id)
        if name == _DEVICE_KIND:
            text = statistic.str_value or names.get(statistic.ref_value, b"")
            kind = text.decode(errors="backslashreplace") or None
        elif name == _DEVICE_MEMORY:
            number = statistic.uint64_value or statistic.int64_value
            memory = number if 0 < number <= LARGEST_SIZE else memory
    return Device(platform, kind, memory)
