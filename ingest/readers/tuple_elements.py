"""Elements of tuples within operands: since JAX 0.12 `%x#1` is element 1 of the tuple x.

XLA then leaves the get-tuple-element out of the text (`--xla_dump_compact_gte`). The readers
and the model know instructions only, so each is written out again, before its first use.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.shapes import Shape, TupleShape, parse_shape
from .instructions import InstructionLines
from .lines import Lines, with_inserted

# A number of more digits is none of XLA's, and slow to read.
_MOST_DIGITS = 9


def written_out(lines: Lines, instructions: InstructionLines, operands: pa.Table) -> Lines:
    """The text with a get-tuple-element for each element that is only an operand.

    It is called as the operand is printed, `x#1`, because the text tells no name of its own,
    and has the number of the line that uses it first. Without such operands these are the same
    lines. `instructions` and `operands` are what the lines hold. Raises DumpError.
    """
    within = operands["operand"].filter(pc.match_substring(operands["operand"], "#"))
    names = pc.unique(within)
    names = names.filter(pc.is_null(pc.index_in(names, value_set=instructions.names)))
    # What has no tuple is left to the model, which says what is not defined.
    tuples = pc.list_element(pc.split_pattern(names, "#", max_splits=1), 0)
    at = pc.index_in(tuples, value_set=instructions.names)
    names, at = names.filter(pc.is_valid(at)), at.drop_null()
    if not len(names):
        return lines
    shapes = instructions.shapes.take(at).to_pylist()
    first = pc.index_in(names, value_set=operands["operand"].combine_chunks())
    users = pc.index_in(operands["instruction"].take(first), value_set=instructions.names)
    texts: dict[str, str] = {}
    places = []
    for name, shape, row in zip(names.to_pylist(), shapes, users.to_pylist(), strict=True):
        for element, text in _instructions(name, shape, int(instructions.lines.numbers[row])):
            if element not in texts:
                texts[element] = text
                places.append(row)
    before = np.searchsorted(lines.starts, instructions.lines.starts[places])
    return with_inserted(lines, before, list(texts.values()))


def _instructions(name: str, shape_text: str, line: int) -> list[tuple[str, str]]:
    """`x#1#0` as instructions: the names x#1 and x#1#0, each with the line that defines it."""
    found = []
    of, *numbers = name.split("#")
    try:
        shape: Shape = parse_shape(shape_text)
    except ValueError as error:
        raise DumpError(f"operand {name}: {error}", line) from None
    for number in numbers:
        elements = shape.elements if isinstance(shape, TupleShape) else ()
        is_number = number.isdecimal() and len(number) <= _MOST_DIGITS
        if not is_number or int(number) >= len(elements):
            raise DumpError(f"operand {name}: {of} has {len(elements)} elements", line)
        shape = elements[int(number)]
        element = f"{of}#{number}"
        found.append((element, f"  %{element} = {shape} get-tuple-element(%{of}), index={number}"))
        of = element
    return found
