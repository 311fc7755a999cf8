"""The identity of a HloProto, and HloProtos within executables of a TPU."""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ...xla.errors import DumpError
from .proto_schema import damage_as_dump_error, parse
from .wire import encode_varint, varint

_OPCODE: Final = re.compile(rb"[a-z][a-z0-9\-]*")
_NOT_HLO_PROTO: Final = "not a HloProto"
# The header of a Riegeli file, and of each of its blocks.
_RIEGELI: Final = bytes.fromhex("83af70d10d884a3f0000000000000000")
_BLOCK_BYTES: Final = 1 << 16
_BLOCK_HEADER_BYTES: Final = 24
# Tags of the fields 1 and 3 of HloProto, and of a module's first field, its name.
_MODULE_TAG: Final = b"\x0a"
_ASSIGNMENT_TAG: Final = b"\x1a"
_NAME_TAG: Final = b"\x0a"
_MAX_LENGTH_BYTES: Final = 5  # of a message below 2 GiB


class ProtoIdentity(NamedTuple):
    """The identity of a HloProto.

    Attributes:
        content: a digest that equal messages share. It ignores the order of maps and the module's
            id, which vary from one dump of a module to the next.
        has_assignment: False for an earlier stage, and for a program from JAX's compilation cache.
        is_scheduled: False for an early stage.
        missing_in_text: a digest of the stack frames and of the shardings of arguments, which the
            HLO text of some versions lacks.
    """

    module_name: str
    content: str
    has_assignment: bool
    is_scheduled: bool
    missing_in_text: str


def parse_hlo_proto(content: bytes | memoryview) -> Any:
    """The HloProto in a file. Raises DumpError for damaged bytes and for another message.

    A memory usage report, for example, has messages at the same fields, but other ones in them.
    """
    if not content:
        raise DumpError("the file is empty: dump the program again")
    with damage_as_dump_error():
        proto = parse("HloProto", content)
        module = proto.hlo_module
        if not module.name or not module.computations:
            raise DumpError(
                f"{_NOT_HLO_PROTO}: it has no module with a name and computations "
                "(a profile's name must end with .xplane.pb)"
            )
        module.name.decode()
        computation = module.computations[0]
        if not computation.instructions or not _OPCODE.fullmatch(
            computation.instructions[0].opcode
        ):
            raise DumpError(f"{_NOT_HLO_PROTO}: its first computation has no instructions")
    return proto


def identify_hlo_proto(content: bytes | memoryview) -> ProtoIdentity:
    """Identify a HloProto without reading its instructions.

    The digest depends on the fields in `proto_schema`, because protobuf sorts these and appends
    all others. Raises DumpError if the bytes are not a HloProto.
    """
    proto = parse_hlo_proto(content)
    module = proto.hlo_module
    module.ClearField("id")
    frames = module.stack_frame_index.SerializeToString(deterministic=True)
    digest = sha256(len(frames).to_bytes(8, "little") + frames)
    for sharding in module.spmd_parameters_shardings:
        digest.update(len(sharding).to_bytes(8, "little") + sharding)
    return ProtoIdentity(
        module.name.decode(),
        sha256(proto.SerializeToString(deterministic=True)).hexdigest(),
        len(proto.buffer_assignment.buffer_allocations) > 0,
        module.HasField("schedule"),
        digest.hexdigest(),
    )


def find_hlo_proto(executable: bytes, module_name: str) -> bytes | None:
    """The HloProto in a TPU executable, as `runtime_executable().serialize()` returns it.

    The format is libtpu's own, so the HloProto is recognised by its form alone: a module of this
    name, followed by a buffer assignment. Older versions store it as one piece, newer ones in a
    Riegeli file, which has a header before every 64 KiB. None if there is no such HloProto.
    """
    name = module_name.encode()
    name_field = _NAME_TAG + encode_varint(len(name)) + name
    for data in _contiguous_contents(executable):
        module_start = data.find(name_field)
        while module_start >= 0:
            proto = _hlo_proto_around(data, module_start)
            if proto is not None:
                return proto
            module_start = data.find(name_field, module_start + 1)
    return None


def _contiguous_contents(executable: bytes) -> Iterator[bytes]:
    """The bytes as they are, and those of a Riegeli file in them without its headers."""
    yield executable
    start = executable.find(_RIEGELI)
    if start >= 0:
        blocks = range(start, len(executable), _BLOCK_BYTES)
        yield b"".join([executable[at + _BLOCK_HEADER_BYTES : at + _BLOCK_BYTES] for at in blocks])


def _hlo_proto_around(data: bytes, module_start: int) -> bytes | None:
    """The HloProto whose module's content starts at this byte, with a buffer assignment behind it.

    None without one. Looks back for the module's tag and length.
    """
    earliest = max(module_start - 1 - _MAX_LENGTH_BYTES, 0)
    for start in range(module_start - 2, earliest - 1, -1):
        if data[start : start + 1] != _MODULE_TAG:
            continue
        try:
            length, length_end = varint(data, start + 1, module_start)
            module_end = module_start + length
            if length_end != module_start or data[module_end : module_end + 1] != _ASSIGNMENT_TAG:
                continue
            length, assignment_start = varint(data, module_end + 1, len(data))
            end = assignment_start + length
            if end <= len(data):
                proto = parse_hlo_proto(data[start:end])
                if proto.buffer_assignment.buffer_allocations:
                    return data[start:end]
        except DumpError:
            continue
    return None
