"""Rows in the format that the user asked for."""

import pyarrow as pa

from ...queries.cells import notes
from ...queries.result import Rows
from ..options import Format
from .csv import print_csv
from .json import print_json_rows
from .markdown import print_markdown
from .table import print_table
from .text import print_note, results


def print_rows(rows: Rows | pa.Table, output: Format, *, wide: bool | None = None) -> None:
    """Print rows; where there are none, a table says so on stderr.

    A `wide` table is not fitted to the terminal; None if the command has no such option.
    """
    found = rows if isinstance(rows, Rows) else Rows(rows)
    with results():
        match output:
            case Format.csv:
                print_csv(found.table)
            case Format.json:
                print_json_rows(found.table)
            case Format.markdown:
                print_markdown(found.table)
            case Format.table if len(found):
                print_table(found.table, wide=wide)
                for note in notes(found.table):
                    print_note(note)
            case _:
                print_note(found.empty)
