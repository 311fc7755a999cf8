"""Paragraphs of text, as wide as the terminal."""

import re
import shutil
import textwrap

from .text import print_text

_WIDTH = 80
_UNIT = re.compile(r"(?<=\d) (?=[KMGTP]?i?B\b)")


def print_paragraph(text: str, first: str = "", rest: str = "  ") -> None:
    """Print a paragraph; `first` stands before its first line, `rest` before the others."""
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, 100)
    # A number and its unit stay on one line.
    kept = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(
        kept,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print_text("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))
