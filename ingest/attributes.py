"""Reader of the instructions' attributes that only dataflow and liveness need.

The warehouse does not store these attributes, so nothing reads them unless a module's
liveness is worked out from its HLO text.
"""

import re
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .instructions import InstructionLines
from .lines import LARGEST_ID, Bytes, DumpError, Mask, Positions, slices

ShapeIndex: TypeAlias = tuple[int, ...]

_MOST_DIGITS = 10
# `{1,0}: (2, {3}, may-alias)`; the kind stands only in `input_output_alias`.
_ALIAS = re.compile(
    r"\{(?P<output>[\d, ]*)\}:\s*"
    r"\((?P<number>\d{1,9}),\s*\{(?P<operand>[\d, ]*)\}(?:,\s*(?:may|must)-alias)?\)"
)
_ALIASES = r"^\{(?P<text>(?:[^{}]|\{[^{}]*\})*)\}"


# The newest TPU compilers' backend_config: which operands and results of an instruction share
# memory. Results count on after the operands, and both by their leaves.
_ALIASING_OPERANDS = '"aliasing_operands":{"lists":['
_ALIASING_LISTS = r"^(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"


class Alias(NamedTuple):
    """One pair of an aliasing attribute: the output's index, and where the same memory comes in.

    `number` is an operand's number, or a parameter's in the header.
    """

    output_index: ShapeIndex
    number: int
    operand_index: ShapeIndex


def read_attributes(instructions: InstructionLines) -> pa.Table:
    """What dataflow needs of instruction lines and the warehouse does not store, a row each.

    Columns: is_root; parameter_number of `parameter(N)`; tuple_index, a get-tuple-element's
    `index=N`; fusion_kind, such as kLoop; output_to_operand_aliasing, the text in its braces.
    What an instruction does not say is null. Raises DumpError.
    """
    return pa.table(
        {
            "is_root": pa.array(_is_root(instructions)),
            "parameter_number": _parameter_numbers(instructions),
            "tuple_index": _tuple_indices(instructions),
            "fusion_kind": _texts(instructions, "kind", r"^(?P<text>k[A-Za-z]+)"),
            "output_to_operand_aliasing": _texts(
                instructions, "output_to_operand_aliasing", _ALIASES
            ),
        }
    )


def parse_aliases(text: str) -> list[Alias]:
    """The pairs of `output_to_operand_aliasing` or of the header's `input_output_alias`.

    Raises DumpError if the text is not a list of such pairs.
    """
    rest = _ALIAS.sub("", text).strip(" ,")
    if rest:
        raise DumpError(f"expected aliases such as '{{0}}: (1, {{}})', found {rest[:60]!r}")
    return [
        Alias(_index(found["output"]), int(found["number"]), _index(found["operand"]))
        for found in _ALIAS.finditer(text)
    ]


def read_aliasing_operands(
    instructions: InstructionLines, chosen: Mask
) -> tuple[Positions, pa.DictionaryArray]:
    """The chosen instructions whose backend_config says which operands share memory, and how.

    Returns their rows, and the text of each one's lists, empty where nothing shares.
    """
    lines = instructions.lines
    rows, starts = instructions.attribute("backend_config")
    rows, starts = rows[chosen[rows]], starts[chosen[rows]]
    at = pc.find_substring(
        slices(lines.content, starts, lines.ends[rows]), _ALIASING_OPERANDS
    ).to_numpy()
    rows, starts, at = rows[at >= 0], starts[at >= 0], at[at >= 0]
    rest = slices(lines.content, starts + at + len(_ALIASING_OPERANDS), lines.ends[rows])
    found = pc.struct_field(pc.extract_regex(rest, pattern=_ALIASING_LISTS), "text")
    return rows, pc.fill_null(found, "").dictionary_encode()


def _index(text: str) -> ShapeIndex:
    return tuple(int(part) for part in text.replace(" ", "").split(",") if part)


def _is_root(instructions: InstructionLines) -> Mask:
    """Which lines start with `ROOT `, and are not of an instruction called ROOT."""
    lines = instructions.lines
    at = lines.starts + 2 * lines.starting("  ")
    root = np.ones(len(lines), bool)
    for offset, byte in enumerate(b"ROOT "):
        root &= _byte(lines.content, at + offset) == byte
    root &= _byte(lines.content, at + len("ROOT ")) != ord("=")
    return root


def _byte(content: Bytes, at: Positions) -> Bytes:
    """The bytes at these positions; the last one for a position beyond the end."""
    found: Bytes = content[np.minimum(at, len(content) - 1)]
    return found


def _parameter_numbers(instructions: InstructionLines) -> pa.Int32Array:
    rows = np.flatnonzero(instructions.has_opcode(["parameter"]))
    return _numbers(instructions, rows, instructions.operands[rows])


def _tuple_indices(instructions: InstructionLines) -> pa.Int32Array:
    rows, starts = instructions.attribute("index")
    chosen = instructions.has_opcode(["get-tuple-element"])[rows]
    return _numbers(instructions, rows[chosen], starts[chosen])


def _numbers(instructions: InstructionLines, rows: Positions, starts: Positions) -> pa.Int32Array:
    """The decimal numbers that start at these bytes, in a column of all lines.

    Raises DumpError at the first that is not a number.
    """
    lines = instructions.lines
    numbers = np.zeros(len(rows), np.int64)
    digits = np.zeros(len(rows), np.int64)
    open_ = np.arange(len(rows))
    for place in range(_MOST_DIGITS):
        digit = _byte(lines.content, starts[open_] + place).astype(np.int64) - ord("0")
        is_digit = (digit >= 0) & (digit <= 9)
        open_, digit = open_[is_digit], digit[is_digit]
        numbers[open_] = numbers[open_] * 10 + digit
        digits[open_] = place + 1
    wrong = (digits == 0) | (digits == _MOST_DIGITS) | (numbers > LARGEST_ID)
    if wrong.any():
        lines.where(rows).refuse(wrong, "expected a number of at most nine digits")
    column = np.zeros(len(lines), np.int32)
    column[rows] = numbers
    missing = np.ones(len(lines), bool)
    missing[rows] = False
    return pa.array(column, mask=missing)


def _texts(instructions: InstructionLines, name: str, pattern: str) -> pa.Array:
    """An attribute's value as the group `text` of a pattern finds it, null where it does not.

    A column of few distinct texts: a dictionary.
    """
    lines = instructions.lines
    rows, starts = instructions.attribute(name)
    value = slices(lines.content, starts, lines.ends[rows])
    # struct_field keeps null what does not match.
    found = pc.struct_field(pc.extract_regex(value, pattern=pattern), "text").dictionary_encode()
    at = np.full(len(lines), -1)
    at[rows] = np.arange(len(rows))
    return found.take(pa.array(at, mask=at < 0))
