"""Reader of `BufferAssignment:`: the allocations and the values in them."""

import re

from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.parts import Allocation, AssignedValue, BufferAssignment
from ...xla.shapes import ELEMENT_BYTES, array_size
from .lines import Lines, at_line, read_integer
from .newer_text import NewerNames, newer_sections, resembles

HEADING = "BufferAssignment:"
# As BufferAllocation::ToShortString prints it, with an address only in 2020 (seed 004).
_ALLOCATION = re.compile(
    r"allocation ([0-9]+): (?:0x([0-9a-f]+), )?size ([0-9]+)(?:, color ([0-9]+))?(?:, page [0-9]+)?"
    r"(?:, parameter ([0-9]+), shape \|([^|]*)\| at ShapeIndex (\{[0-9,]*\}))?"
    r"(, output shape is \|([^|]*)\|)?"
    r"(, constant)?(, thread-local)?(, maybe-live-out)?(, preallocated-temp)?:"
)
# ` (phi)` marks the merged value of a loop or conditional: every program with a `while` has some
# (`tpu/llama-v5e`), and its sizes depend on them. XLA prints the shape index only if the defining
# instruction's shape is a tuple; otherwise the value is the whole array, `{}`.
VALUE_NAME = r"<([0-9]+) ([^ {>]+)(\{[0-9,]*\})? (\(phi\) )?@([0-9]+)>"
_VALUE = re.compile(
    rf" value: {VALUE_NAME} \(size=([0-9]+),offset=([0-9]+)((?:,[a-z_]+=[^,()]*)*)\): (.+)"
)
# The attributes of an allocation, in the order of _ALLOCATION. Every allocation has at least one
# of _KINDS, and all sizes of the module depend on these.
_ATTRIBUTES = [
    re.compile(rf"{attribute}(?=, |$)")
    for attribute in (
        r", color [0-9]+",
        r", page [0-9]+",
        r", parameter [0-9]+, shape \|[^|]*\| at ShapeIndex \{[0-9,]*\}",
        r", output shape is \|[^|]*\|",
        ", constant",
        ", thread-local",
        ", maybe-live-out",
        ", preallocated-temp",
    )
]
_KINDS = ("parameter", "constant", "thread-local", "maybe-live-out", "preallocated-temp")
_ATTRIBUTE_NAMES = (*_KINDS, "color", "page", "output shape is", "ShapeIndex")
_START = re.compile(r"(allocation [0-9]+: (?:0x[0-9a-f]+, )?size [0-9]+)(, .*):")
_NEWER = re.compile(r"(?:, [a-z][a-z0-9_-]*(?:[ =](?:\|[^|]*\||[a-z0-9_{}.-]+))*)+")
_NEWER_VALUE = re.compile(r"(?<=[a-z0-9_-])[ =](?:\|[^|]*\||[^,|])*")
# The newest XLA lists values of another color twice: below this line, and with the others.
_LISTED_AGAIN = (" reused by buffers of a different color:", "  value: ")
_KNOWN = ("allocation ", " value: ", *_LISTED_AGAIN)
_MAX_ADDRESS_DIGITS = 15


def read_buffer_assignment(lines: Lines) -> BufferAssignment:
    """Read the section of a dump that starts with `BufferAssignment:`. Raises DumpError."""
    if lines.text[0] != HEADING:
        raise DumpError(
            f"not a buffer assignment: expected '{HEADING}' in the first line", lines.first_number
        )
    return read_allocations(lines.between(1, len(lines.text)))


def read_allocations(lines: Lines) -> BufferAssignment:
    """Read the lines below the heading `BufferAssignment:`. Raises DumpError."""
    allocations: list[Allocation] = []
    values: list[AssignedValue] = []
    not_understood = []
    newer = NewerNames()
    for number, line in enumerate(lines.text, lines.first_number):
        try:
            if line.startswith(" value: "):
                if not allocations:
                    raise DumpError("expected an allocation before the first value")
                values.append(_read_value(line, allocations[-1].allocation_index, newer, number))
            elif line.startswith("allocation "):
                allocations.append(_read_allocation(line, newer, number))
            elif line and not line.startswith(_LISTED_AGAIN):
                remaining = lines.between(number - lines.first_number, len(lines.text))
                not_understood = newer_sections(remaining, lambda line: line.startswith(_KNOWN))
                if not not_understood:
                    raise DumpError("expected an allocation or a value")
                break
        except DumpError as problem:
            raise at_line(problem, line, number) from None
    if not allocations:
        raise DumpError(
            "the file ends before its first allocation: dump the program again", lines.last_number
        )
    return BufferAssignment(
        allocations, values, not_understood=[*newer.not_understood(), *not_understood]
    )


def _read_allocation(line: str, newer: NewerNames, line_number: int) -> Allocation:
    match = _ALLOCATION.fullmatch(line)
    if match is None:
        match = _ALLOCATION.fullmatch(_without_newer_attributes(line, newer, line_number))
    if match is None:
        raise DumpError("expected an allocation")
    index, address, size, space, parameter, parameter_shape, parameter_index = match.groups()[:7]
    output, output_shape, constant, thread_local, live_out, temp = match.groups()[7:]
    if address is not None and len(address) > _MAX_ADDRESS_DIGITS:
        raise DumpError("an address is too long")
    return Allocation(
        allocation_index=read_integer(index),
        memory_space=0 if space is None else read_integer(space),
        size_bytes=read_integer(size, LARGEST_SIZE),
        is_parameter=parameter is not None,
        parameter_number=None if parameter is None else read_integer(parameter),
        parameter_shape_index=parameter_index,
        is_output=output is not None,
        is_constant=constant is not None,
        is_thread_local=thread_local is not None,
        maybe_live_out=live_out is not None,
        is_temp=temp is not None,
        shape=output_shape if parameter is None else parameter_shape,
        address=None if address is None else int(address, 16),
    )


def _without_newer_attributes(line: str, newer: NewerNames, line_number: int) -> str:
    """An allocation's line with only the attributes of _ATTRIBUTES; `newer` receives the others.

    Raises DumpError where sizes may depend on the others: in an allocation without a known kind,
    and if one of them is nearly a known one.
    """
    match = _START.fullmatch(line)
    if match is None:
        raise DumpError("expected an allocation")
    start, others = match.groups()
    known = ""
    for attribute in _ATTRIBUTES:
        found = attribute.search(others)
        if found is not None:
            known += found[0]
            others = others[: found.start()] + others[found.end() :]
    has_kind = any(kind in known for kind in _KINDS)
    if not has_kind or not _NEWER.fullmatch(others):
        raise DumpError("expected an allocation")
    for attribute_text in others.removeprefix(", ").split(", "):
        if resembles(attribute_text.split(" ")[0], _ATTRIBUTE_NAMES):
            raise DumpError("expected an allocation")
    newer.add("attribute of an allocation", _NEWER_VALUE.sub("", others)[2:], line_number)
    return f"{start}{known}:"


def _read_value(
    line: str, allocation_index: int, newer: NewerNames, line_number: int
) -> AssignedValue:
    match = _VALUE.fullmatch(line)
    if match is None:
        raise DumpError("expected a value")
    value_id, instruction, shape_index, phi, space, size, offset, attributes, shape = match.groups()
    size_bytes = read_integer(size, LARGEST_SIZE)
    element_type, logical_bytes, _ = array_size(shape)
    if logical_bytes is None and (element_type is None or element_type in ELEMENT_BYTES):
        # A tuple has no elements of its own: its size is that of its index table, which has no
        # padding. Of an unknown element type the padding is not known.
        logical_bytes = size_bytes
    newer.add_element_type(element_type, line_number)
    if attributes:
        names = ",".join(text.split("=")[0] for text in attributes[1:].split(","))
        newer.add("attribute of a value", names, line_number)
    return AssignedValue(
        read_integer(value_id),
        instruction,
        shape_index or "{}",
        phi is not None,
        read_integer(space),
        allocation_index,
        read_integer(offset, LARGEST_SIZE),
        size_bytes,
        logical_bytes,
        shape,
        element_type,
    )
