"""The outer fields of a HloProto: the module's and the buffer assignment's places in the file."""

import re
from array import array
from dataclasses import dataclass, field

from ...xla.errors import DumpError
from .wire_scalar import BYTES, content, fields, number_of

# Fields of HloProto.
_MODULE, _ASSIGNMENT = 1, 3
# Fields of HloModuleProto.
_NAME, _ENTRY_NAME, COMPUTATIONS, SHAPE, MODULE_ID, _ENTRY_ID, SCHEDULE, ALIASES = range(1, 9)
_PARAMETER_SHARDINGS, DEVICES, FRAMES, DONORS = 14, 15, 17, 18
_SINGLE = (SHAPE, SCHEDULE, ALIASES, DEVICES, FRAMES, DONORS)
_ALLOCATIONS = 3  # of BufferAssignmentProto
_OPCODE = re.compile(rb"[a-z][a-z0-9\-]*")
_NOT_ONE = "not a HloProto"

Extent = tuple[int, int]


@dataclass
class ProtoModule:
    """Where the parts of a HloProto start and end.

    computations: where each starts and ends, one after the other; single: the module's other
    messages by field; shardings: where each argument's sharding is, if the module was
    partitioned; skipped: where the module's fields lie that do not count for its identity;
    assignment: None if the file has none.
    """

    extent: Extent
    name: str = ""
    entry_id: int = 0
    computations: "array[int]" = field(default_factory=lambda: array("q"))
    single: dict[int, Extent] = field(default_factory=dict)
    shardings: list[Extent] = field(default_factory=list)
    skipped: list[Extent] = field(default_factory=list)
    assignment: Extent | None = None


def find_module(data: bytes | memoryview) -> ProtoModule:
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
    if not parts.name or not parts.computations:
        raise DumpError(f"{_NOT_ONE}: the module at byte {module[0]} has no name or computations")
    _check_form(data, (parts.computations[0], parts.computations[1]))
    parts.assignment = outer.get(_ASSIGNMENT)
    return parts


def has_allocations(data: bytes | memoryview, assignment: Extent | None) -> bool:
    """Whether a buffer assignment is there and holds anything. Raises DumpError."""
    if assignment is None:
        return False
    return any(found[0] == _ALLOCATIONS for found in fields(data, *assignment))


def _walked(data: bytes | memoryview, module: Extent) -> ProtoModule:
    parts = ProtoModule(module)
    at = module[0]
    for found in fields(data, *module):
        number, end = found[0], found[3]
        if number == COMPUTATIONS:
            parts.computations.extend(content(found))
        elif number == _NAME:
            parts.name = _text(data, content(found))
        elif number == _PARAMETER_SHARDINGS:
            parts.shardings.append(content(found))
        elif number == _ENTRY_ID:
            parts.entry_id = number_of(found)
        elif number in _SINGLE:
            if number in parts.single:
                raise DumpError(f"{_NOT_ONE}: field {number} again, which ends at byte {end}")
            parts.single[number] = content(found)
        if number in (MODULE_ID, SCHEDULE):
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
