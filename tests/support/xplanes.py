"""XProf's profiles, made up: planes with modules and devices."""

from io import BytesIO
from pathlib import Path

from memhouse.ingest.readers.xplane import read_xspace

from .dumps import DATA

SESSION = DATA / "session/plugins/profile/2026_11_21_12_55_28"
XPLANE = SESSION / "vm.xplane.pb"
HLO_PROTO, KIND, MEMORY = 4, 1, 2


def number(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def part(tag: int, value: int | str | bytes) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    content = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(content)) + content


def named(tag: int, key: int, name: str, more: bytes = b"") -> bytes:
    """An entry of a map from ids to what has a name."""
    return part(tag, part(1, key) + part(2, part(1, key) + part(2, name) + more))


def plane(name: str, *parts: bytes) -> bytes:
    return part(1, part(2, name) + b"".join(parts))


def metadata(modules: list[tuple[str, bytes]], statistic: str = "Hlo Proto") -> bytes:
    """The plane that holds the modules, by their names in the session."""
    entries = [
        named(4, at, name, part(5, part(1, HLO_PROTO) + part(6, content)))
        for at, (name, content) in enumerate(modules, 1)
    ]
    return plane("/host:metadata", *entries, named(5, HLO_PROTO, statistic))


def device(name: str, kind: str | None = None, memory: int | None = None) -> bytes:
    """The plane of a device, with a line of events."""
    parts = [part(3, b"\xff" * 100)]
    parts += [named(5, KIND, "device_type_string")] if kind is not None else []
    parts += [named(5, MEMORY, "memory_size")] if memory is not None else []
    parts += [part(6, part(1, KIND) + part(5, kind))] if kind is not None else []
    parts += [part(6, part(1, MEMORY) + part(3, memory))] if memory is not None else []
    return plane(name, *parts)


def modules_of(path: Path = XPLANE) -> list[tuple[str, bytes]]:
    """The modules of a profile, by their names in it."""
    content = path.read_bytes()
    found = read_xspace(BytesIO(content))
    assert found.error is None
    return [(name, content[start : start + size]) for name, start, size in found.modules]
