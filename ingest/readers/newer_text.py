"""Text of a newer XLA that no reader knows: sections, lines, attributes and element types.

The readers pass such text over and list it as NotUnderstood. A corrupt file must not pass for a
newer one, so each function is strict about the form of the text that it accepts. The rest of the
file must still be complete: ingest compares the totals of its parts.
"""

import difflib
import re
from collections.abc import Callable, Collection
from functools import lru_cache

from ...xla.program import NotUnderstood
from ...xla.shapes import ELEMENT_BYTES
from .lines import Lines, excerpt

# `BufferAssignment stats:` and `HloSomething (max 5):`, but no line of numbers or shapes.
_HEADING = re.compile(r"[A-Z][A-Za-z0-9 _/().-]*:")
_SUBHEADING = re.compile(r"  [A-Z][A-Za-z0-9 _/().-]*:")
_SIMILARITY = 0.8


class NewerNames:
    """Names that no reader knows, each with the first line that has it."""

    def __init__(self) -> None:
        self._first_lines: dict[str, int] = {}

    def add(self, kind: str, name: str, line_number: int) -> None:
        """Add a name such as `tier`, of a kind such as "attribute of a value"."""
        self._first_lines.setdefault(f"{kind} {excerpt(name)}", line_number)

    def add_element_type(self, element_type: str | None, line_number: int) -> None:
        """Add an element type if its size is not known."""
        if element_type is not None and element_type not in ELEMENT_BYTES:
            self.add("element type", element_type, line_number)

    def not_understood(self) -> list[NotUnderstood]:
        """The names in the order in which they were added."""
        return [NotUnderstood(line, name) for name, line in self._first_lines.items()]


def newer_sections(
    lines: Lines, is_known: Callable[[str], bool], *, indented: bool = False
) -> list[NotUnderstood]:
    """The headings of unknown sections, if the lines are nothing but such sections.

    Empty if the first line is not a heading, or if a line of a known form follows: then the
    heading is within a known section, where it is an error.

    Args:
        is_known: whether a line has a form that the reader of the known section parses.
        indented: whether the headings are indented by two spaces.
    """
    heading = _SUBHEADING if indented else _HEADING
    if not lines.text or not heading.fullmatch(lines.text[0]):
        return []
    sections = []
    for number, line in enumerate(lines.text, lines.first_number):
        if is_known(line):
            return []
        if line.endswith(":") and heading.fullmatch(line):
            sections.append(NotUnderstood(number, f"section {excerpt(line.strip())}"))
    return sections


def newer_headings(lines: Lines, known: str) -> list[NotUnderstood]:
    """The headings of lines that no reader parses, at either indentation.

    Args:
        known: how a known heading starts.
    """
    return [
        NotUnderstood(number, f"section {excerpt(line.strip())}")
        for number, line in enumerate(lines.text, lines.first_number)
        if line.endswith(":")
        and not line.startswith(known)
        and (_HEADING.fullmatch(line) or _SUBHEADING.fullmatch(line))
    ]


def newer_lines(lines: Lines) -> list[NotUnderstood]:
    """All lines that are not blank: no known XLA prints any where these are."""
    return [
        NotUnderstood(number, f"line {excerpt(line.strip())}")
        for number, line in enumerate(lines.text, lines.first_number)
        if line.strip()
    ]


def resembles(word: str, known: Collection[str]) -> bool:
    """Whether a word is nearly a known one: then it is a corrupt word rather than a new one."""
    return _resembles(word, tuple(known))


@lru_cache(maxsize=10_000)
def _resembles(word: str, known: tuple[str, ...]) -> bool:
    return bool(difflib.get_close_matches(word, known, n=1, cutoff=_SIMILARITY))
