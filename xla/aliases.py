"""The text of aliasing attributes: pairs of arrays that share memory."""

import re
from collections.abc import Sequence
from typing import Any, Final

from .errors import DumpError
from .program import Alias, ShapeIndex

# A number of more digits would not fit into 64 bits.
_INDEX: Final = r"(?:[0-9]{1,9}(?![0-9])[, ]*)*+"
_ALIAS: Final = re.compile(
    rf"\{{({_INDEX})\}}:\s*\(([0-9]{{1,9}}),\s*\{{({_INDEX})\}}(?:,\s*(?:may|must)-alias)?\)"
)
_DONOR: Final = re.compile(rf"\(([0-9]{{1,9}}),\s*\{{({_INDEX})\}}\)")


def parse_aliases(text: str) -> list[Alias]:
    """The pairs of `output_to_operand_aliasing` or of the header's `input_output_alias`.

    Raises DumpError if the text is not a list of such pairs.

    >>> parse_aliases("{1,0}: (2, {}, may-alias), {}: (0, {3})")
    [Alias(output_index=(1, 0), number=2, operand_index=()), \
Alias(output_index=(), number=0, operand_index=(3,))]
    """
    return [
        Alias(_parse_index(output), int(number), _parse_index(operand))
        for output, number, operand in _find_all(_ALIAS, text, "aliases such as '{0}: (1, {})'")
    ]


def parse_donors(text: str) -> list[tuple[int, ShapeIndex]]:
    """The parameters, and the parts of them, of the header's `buffer_donor`.

    Raises DumpError if the text is not a list of such pairs.

    >>> parse_donors("(17, {}), (2, {1,0})")
    [(17, ()), (2, (1, 0))]
    """
    donors = _find_all(_DONOR, text, "donors such as '(1, {})'")
    return [(int(number), _parse_index(index)) for number, index in donors]


def _find_all(pattern: re.Pattern[str], text: str, expected: str) -> Sequence[Any]:
    """All matches. Raises DumpError if the text has anything else."""
    if rest := pattern.sub("", text).strip(" ,"):
        raise DumpError(f"expected {expected}, found {rest[:60]!r}")
    return pattern.findall(text)


def _parse_index(text: str) -> ShapeIndex:
    return tuple([int(part) for part in text.replace(" ", "").split(",") if part])
