"""Why memory ran out, for a person: a few lines for each message."""

import re
import shutil
import textwrap

import pyarrow as pa

from ...queries.cells import human_bytes, without_layout
from ...queries.oom import OomAnswer
from .table import print_table
from .text import print_text

_WIDTH = 80
_UNIT = re.compile(r"(?<=\d) (?=[KMGTP]?i?B\b)")


def print_answer(answer: OomAnswer) -> None:
    """Print what is to be said of one message."""
    _paragraph(answer.title)
    for fact in answer.facts:
        _paragraph(fact, "  ", "           ")
    if len(answer.filled_by):
        print_text(f"\nwhat fills it, {answer.filled_from}:")
        print_table(_cells(answer.filled_by.table), wide=None)
    if answer.first:
        print_text("\nlook first at:")
        for number, text in enumerate(answer.first, start=1):
            _paragraph(text, f"  {number}. ", "     ")
    if answer.more:
        print_text("\nmore:")
        for text in answer.more:
            print_text(f"  {text}")


def _paragraph(text: str, first: str = "", rest: str = "  ") -> None:
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


def _cells(table: pa.Table) -> pa.Table:
    """The rows as texts; ~ says that a size is rounded."""
    rows = [
        {
            "size": f"{'~' if row['is_rounded'] else ''}{human_bytes(row['size_bytes'])}",
            "buffers": row["buffers"],
            "made at": row["source"],
            "what": without_layout(row["shape"] or ""),
        }
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows)
