"""The text of aliasing attributes: pairs of arrays that share memory."""

import re
from typing import Final

from .errors import DumpError
from .program import Alias, ShapeIndex

# A number of more digits would not fit into 64 bits.
_INDEX: Final = r"(?:[0-9]{1,9}(?![0-9])[, ]*)*+"
_ALIAS: Final = re.compile(
    rf"\{{({_INDEX})\}}:\s*\(([0-9]{{1,9}}),\s*\{{({_INDEX})\}}(?:,\s*(?:may|must)-alias)?\)"
)


def parse_aliases(text: str) -> list[Alias]:
    """The pairs of `output_to_operand_aliasing` or of the header's `input_output_alias`.

    Raises DumpError if the text is not a list of such pairs.

    >>> parse_aliases("{1,0}: (2, {}, may-alias), {}: (0, {3})")
    [Alias(output_index=(1, 0), number=2, operand_index=()), \
Alias(output_index=(), number=0, operand_index=(3,))]
    """
    rest = _ALIAS.sub("", text).strip(" ,")
    if rest:
        raise DumpError(f"expected aliases such as '{{0}}: (1, {{}})', found {rest[:60]!r}")
    return [
        Alias(_parse_index(output), int(number), _parse_index(operand))
        for output, number, operand in _ALIAS.findall(text)
    ]


def _parse_index(text: str) -> ShapeIndex:
    return tuple([int(part) for part in text.replace(" ", "").split(",") if part])
