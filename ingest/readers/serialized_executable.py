"""Finds the HloProto in a TPU executable as `runtime_executable().serialize()` gives it.

The format is libtpu's own and no promise, so the HloProto is known by its form alone: a module
of the right name, followed by a buffer assignment. It stands there as it is, but newer versions
write a Riegeli file, where a header stands before every 64 KiB.
"""

from collections.abc import Iterator

from ...xla.errors import DumpError
from .wire_scalar import fields, varint

_RIEGELI = bytes.fromhex("83af70d10d884a3f0000000000000000")
_BLOCK_BYTES, _BLOCK_HEADER_BYTES = 1 << 16, 24
# Tags of HloProto: bytes of its fields 1 and 3. The module's first field is its name.
_MODULE_TAG, _NAME_TAG, _ASSIGNMENT_TAG = b"\x0a", b"\x0a", b"\x1a"
_MODULE_FIELDS = frozenset((1, 3))  # name and computations
_ASSIGNMENT_FIELDS = frozenset((1, 2, 3, 4, 5))
_LONGEST_LENGTH = 5  # bytes of a length below 2 GiB


def find_hlo_proto(data: bytes, module_name: str) -> bytes | None:
    """The HloProto of the module, with its buffer assignment; None if there is none to be found."""
    for content in _contents(data):
        for at in _places(content, module_name.encode()):
            if found := _hlo_proto(content, at):
                return found
    return None


def _contents(data: bytes) -> Iterator[bytes]:
    """The bytes as they are, and those of a Riegeli file in them without its headers."""
    yield data
    start = data.find(_RIEGELI)
    if start >= 0:
        blocks = range(start, len(data), _BLOCK_BYTES)
        yield b"".join(data[at + _BLOCK_HEADER_BYTES : at + _BLOCK_BYTES] for at in blocks)


def _places(content: bytes, name: bytes) -> Iterator[int]:
    """Where a message starts whose first field is this name."""
    first = _NAME_TAG + bytes([len(name) & 0x7F | 0x80, len(name) >> 7])
    if len(name) < 0x80:
        first = _NAME_TAG + bytes([len(name)])
    at = content.find(first + name)
    while at >= 0:
        yield at
        at = content.find(first + name, at + 1)


def _hlo_proto(content: bytes, module: int) -> bytes | None:
    """The HloProto whose module starts there, if it is one."""
    for start in range(module - 2, max(module - 2 - _LONGEST_LENGTH, -1), -1):
        if content[start : start + 1] != _MODULE_TAG:
            continue
        try:
            length, first = varint(content, start + 1, module)
            end = module + length
            if first != module or content[end : end + 1] != _ASSIGNMENT_TAG:
                continue
            length, assignment = varint(content, end + 1, len(content))
            names = {number for number, *_ in fields(content, module, end)}
            held = {n for n, *_ in fields(content, assignment, assignment + length)}
        except DumpError:
            continue
        whole = assignment + length <= len(content)
        if whole and names >= _MODULE_FIELDS and held and held <= _ASSIGNMENT_FIELDS:
            return content[start : assignment + length]
    return None
