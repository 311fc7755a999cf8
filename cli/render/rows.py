"""Rows in the format that the user asked for."""

from typing import TYPE_CHECKING

from ...queries.cells import notes
from ...queries.result import Rows
from ..options import Format
from .text import is_terminal, print_note, results

if TYPE_CHECKING:
    import pyarrow as pa


def print_captioned(rows: Rows, output: Format, *, wide: bool | None = None) -> None:
    """Print rows after what they are rows of, which is a note."""
    if rows.caption:
        print_note(rows.caption)
    print_rows(rows, output, wide=wide)


def print_rows(rows: "Rows | pa.Table", output: Format, *, wide: bool | None = None) -> None:
    """Print rows; where there are none, a table says so on stderr.

    A `wide` table is not fitted to the terminal; None if the command has no such option.
    """
    found = rows if isinstance(rows, Rows) else Rows(rows)
    with results():
        match output:
            # rich and the functions of pyarrow take long to import.
            case Format.csv:
                from .csv import print_csv

                print_csv(found.table)
            case Format.json:
                from .json import print_json_rows

                print_json_rows(found.table)
            case Format.markdown:
                from .markdown import print_markdown

                print_markdown(found.table)
            case Format.table if len(found):
                if is_terminal():
                    from .table import print_table

                    print_table(found.table, wide=wide)
                else:
                    from .plain_table import print_plain_table

                    print_plain_table(found.table)
                for note in notes(found.table):
                    print_note(note)
            case _:
                print_note(found.empty)
