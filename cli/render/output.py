"""Rows and messages as the user sees them: results to stdout, everything else to stderr."""

import csv
import json
import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.markup import escape

from ..options import Format
from .human import heading, human, is_number, one_line, printable
from .table import print_table


def print_error(message: str) -> None:
    """An error, on one line of stderr."""
    Console(stderr=True, soft_wrap=True, emoji=False).print(
        f"[bold red]error:[/] {escape(one_line(message))}", highlight=False
    )


def print_note(message: str) -> None:
    """Something the user should know, on stderr."""
    Console(stderr=True, soft_wrap=True, emoji=False).print(
        escape(printable(message)), highlight=False
    )


def print_text(text: str) -> None:
    """A line of a result, on stdout."""
    with _results():
        sys.stdout.write(printable(text) + "\n")


def print_prose(text: str) -> None:
    """A paragraph of a result, on stdout; a terminal's lines break between words."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    print_text(textwrap.fill(text, shutil.get_terminal_size().columns) if on_terminal else text)


def print_json(value: Any) -> None:
    """A result as JSON, on stdout."""
    with _results():
        json.dump(_plain(value), sys.stdout, indent=1, allow_nan=False)
        sys.stdout.write("\n")


def print_rows(rows: pa.Table, output: Format, *, empty: str = "no rows") -> None:
    """Print rows in the format asked for; of none, a table says `empty` on stderr."""
    with _results():
        match output:
            case Format.csv:
                writer = csv.writer(_Csv())
                writer.writerow(rows.column_names)
                writer.writerows(map(_plain, _records(rows)))
            case Format.json:
                names = _unique(rows.column_names)
                objects = (dict(zip(names, record, strict=True)) for record in _records(rows))
                print_json(list(objects))
            case Format.markdown:
                _print_markdown(rows)
            case Format.table if len(rows):
                print_table(rows)
            case _:
                print_note(empty)


@contextmanager
def _results() -> Iterator[None]:
    """Write results out at once; a reader that has had enough, `head` for one, ends us well."""
    if sys.stdout is None:
        print_error("cannot write the results: standard output is closed")
        raise typer.Exit(1)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(0) from None


class _Csv:
    """Standard output for a csv writer, which quotes only the line ends that it writes itself.

    Rows end in a line feed, but a carriage return within a field must be quoted too.
    """

    def write(self, row: str) -> None:
        sys.stdout.write(row.removesuffix("\r\n") + "\n")


def _print_markdown(rows: pa.Table) -> None:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(map(_markdown, cells)) + " |\n"

    names = rows.column_names
    sys.stdout.write(line([heading(name) for name in names]))
    sys.stdout.write(line(["---:" if is_number(field.type) else "---" for field in rows.schema]))
    for record in _records(rows):
        sys.stdout.write(line(list(map(human, names, record))))


def _markdown(cell: str) -> str:
    """A cell's text as text: no end of the cell, and no HTML."""
    for special in ("\\", "|", "<"):
        cell = cell.replace(special, f"\\{special}")
    return cell


def _records(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows' values in order: `to_pylist` would lose a column that shares its name."""
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _unique(names: list[str]) -> list[str]:
    """Names as the keys of an object: the second `a` is `a_2`."""
    seen: Counter[str] = Counter()
    keys = []
    for name in names:
        seen[name] += 1
        keys.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return keys


def _plain(value: Any) -> Any:
    """A value for csv and json: numbers plain, times in ISO form, what is no number null."""
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Decimal():
            # DuckDB adds up integers to more than 64 bits: still an integer.
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime() | date() | time():
            return value.isoformat()
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)
