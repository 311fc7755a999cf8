"""Printing: messages on stderr, lines, tables and rows of a result on stdout."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TextIO

import pyarrow as pa
import typer

from ...queries.encoders import csv_parts, json_parts, plain
from ...queries.result import Column, Rows, fitted_lines, notes, printable, text_columns
from ...schema.readable import one_line
from .markdown import markdown_lines

Format = Literal["table", "csv", "json", "markdown"]
# Formats of plain values: nothing is folded, rounded or truncated in them.
FOR_SCRIPTS = ("csv", "json")
_WIDTH = 80
_MAX_WIDTH = 100
_UNIT = re.compile(r"(?<=\d) (?=[KMGTP]?i?B\b)")


def print_error(message: str) -> None:
    """Print an error on one line of stderr."""
    error = "\x1b[1;31merror:\x1b[0m" if _has_styles(sys.stderr) else "error:"
    _print_on_stderr(f"{error} {one_line(message)}")


def print_note(message: str) -> None:
    """Print a note on stderr."""
    _print_on_stderr(printable(message))


def _print_on_stderr(text: str) -> None:
    # sys.stderr is None if it is closed. A broken pipe must not end an ingest.
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def print_text(text: str) -> None:
    """Print lines of a result on stdout."""
    with results():
        sys.stdout.write(printable(text) + "\n")


def print_prose(text: str) -> None:
    """Print a paragraph of a result on stdout; on a terminal it is wrapped."""
    width = shutil.get_terminal_size().columns
    print_text(textwrap.fill(text, width, subsequent_indent="  ") if is_terminal() else text)


def print_commands(commands: Sequence[tuple[str, str]]) -> None:
    """Print commands, each with its purpose as a shell comment."""
    width = max(len(command) for command, _ in commands)
    for command, purpose in commands:
        print_text(f"  {command:{width}}  # {purpose}")


def print_paragraph(text: str, indent: str = "", hanging_indent: str = "  ") -> None:
    """Print a paragraph, wrapped at the terminal's width, with an indent of its first line."""
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _MAX_WIDTH)
    # A number and its unit stay on one line.
    lines = textwrap.wrap(
        _UNIT.sub("\N{NO-BREAK SPACE}", text),
        width,
        initial_indent=indent,
        subsequent_indent=hanging_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print_text("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))


def is_terminal() -> bool:
    """Whether results go to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def _has_styles(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal with styles, and the user has not turned them off."""
    is_plain = os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR")
    return stream is not None and stream.isatty() and not is_plain


@contextmanager
def results() -> Iterator[None]:
    """Flush stdout after the block; exit with status 0 if its reader, such as `head`, has ended."""
    if sys.stdout is None:
        print_error("cannot write the results: standard output is closed")
        raise typer.Exit(1)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(0) from None


def print_captioned(rows: Rows, output: Format, *, wide: bool | None = None) -> None:
    """Print the caption as a note, then the rows."""
    if rows.caption:
        print_note(rows.caption)
    print_rows(rows, output, wide=wide)


def print_rows(
    rows: Rows | pa.Table, output: Format, *, wide: bool | None = None, has_format: bool = True
) -> None:
    """Print rows in a format; notes on them, and that there are none, go to stderr.

    Args:
        rows: a table with any columns.
        wide: do not fit a table to the terminal; None if the command has no such option.
        has_format: the command has the option --format.
    """
    result = rows if isinstance(rows, Rows) else Rows(rows)
    with results():
        match output:
            case "csv":
                sys.stdout.writelines(csv_parts(result.table))
            case "json":
                sys.stdout.writelines(json_parts(result.table))
            case "markdown":
                sys.stdout.writelines(markdown_lines(result.table))
            case "table" if len(result):
                option = "--format csv" if wide is None else "--wide"
                remedy = option if has_format else "| cat"
                print_table(result.table, is_wide=bool(wide), remedy=remedy)
                for note in notes(result.table):
                    print_note(note)
            case _:
                print_note(result.empty)
        if result.left_out:
            print_note(f"{result.left_out} (--all)")


def print_table(rows: pa.Table, *, is_wide: bool, remedy: str) -> None:
    """Print rows as a table; on a narrow terminal, omit the last columns and list their names.

    A wide table and one in a pipe have all columns, and no text is truncated.

    Args:
        rows: a table with any columns.
        remedy: the option that shows all columns.
    """
    columns = [Column(field, cells) for field, cells in text_columns(rows)]
    width = shutil.get_terminal_size().columns
    max_width = None if is_wide or not is_terminal() else width
    (heading, *lines), omitted = fitted_lines(columns, max_width)
    if _has_styles(sys.stdout):
        heading = f"\x1b[1m{heading}\x1b[0m"
    sys.stdout.writelines(f"{line}\n" for line in (heading, *lines))
    if omitted:
        note = f"omitted columns: {', '.join(omitted)} ({remedy} shows all)"
        print_note(textwrap.fill(note, width))


def print_json(value: Any) -> None:
    """Print a value of lists and objects as JSON."""
    with results():
        json.dump(plain(value), sys.stdout, indent=1, allow_nan=False)
        sys.stdout.write("\n")
