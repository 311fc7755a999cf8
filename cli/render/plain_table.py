"""Rows as a table in a pipe, as whole as in CSV."""

import sys

import pyarrow as pa

from ...queries.cells import heading, is_number, one_line, text_columns
from ...queries.plain_lines import plain_lines


def print_plain_table(rows: pa.Table) -> None:
    """Print rows; a pipe has no width, so nothing is cut."""
    columns = [
        ([one_line(heading(field.name)), *cells], is_number(field.type))
        for field, cells in text_columns(rows)
    ]
    sys.stdout.writelines(f"{line}\n" for line in plain_lines(columns))
