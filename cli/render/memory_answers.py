"""Why memory ran out, for a person: a few lines for each message."""

import pyarrow as pa

from ...queries.oom import OomAnswer
from ...queries.result import without_layout
from ...schema.readable import human_bytes
from .table import print_table
from .text import print_paragraph, print_text


def print_answer(answer: OomAnswer) -> None:
    """Print what is to be said of one message."""
    print_paragraph(answer.title)
    for fact in answer.facts:
        print_paragraph(fact, "  ", "           ")
    if len(answer.filled_by):
        print_text(f"\nwhat fills it, {answer.filled_from}:")
        print_table(_cells(answer.filled_by.table), is_wide=False, remedy="--format csv")
    if answer.first:
        print_text("\nlook first at:")
        for number, text in enumerate(answer.first, start=1):
            print_paragraph(text, f"  {number}. ", "     ")
    if answer.more:
        print_text("\nmore:")
        for text in answer.more:
            print_text(f"  {text}")


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
