"""Aliasing attributes: pairs of an output and the operand or parameter that shares its memory."""

import re
from typing import NamedTuple, TypeAlias

from ..errors import DumpError

ShapeIndex: TypeAlias = tuple[int, ...]

# A number of more digits would not fit into 64 bits.
_INDEX = r"(?:\d{1,9}(?!\d)[, ]*)*"
# `{1,0}: (2, {3}, may-alias)`; only `input_output_alias` has the kind.
_ALIAS = re.compile(
    rf"\{{(?P<output>{_INDEX})\}}:\s*"
    rf"\((?P<number>\d{{1,9}}),\s*\{{(?P<operand>{_INDEX})\}}(?:,\s*(?:may|must)-alias)?\)"
)


class Alias(NamedTuple):
    """One pair of an aliasing attribute: the output's index, and what shares its memory.

    `number` is an operand's number, or a parameter's number in the header.
    """

    output_index: ShapeIndex
    number: int
    operand_index: ShapeIndex


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


def _index(text: str) -> ShapeIndex:
    return tuple(int(part) for part in text.replace(" ", "").split(",") if part)
