"""What is printed: messages on stderr, lines and rows of a result on stdout."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TextIO

import pyarrow as pa
import typer

from ...queries.encoders import csv_parts, json_parts, plain
from ...queries.result import Column, Rows, fitted_lines, is_number, notes, printable, text_columns
from ...schema.readable import one_line

# How rows are printed; a command that prints something else too names that beside these.
Format = Literal["table", "csv", "json", "markdown"]
# Formats of plain values: nothing is folded, rounded or cut in them.
FOR_SCRIPTS = ("csv", "json")

# Messages on stderr and lines of a result on stdout, without control characters.


def print_error(message: str) -> None:
    """An error, on one line of stderr."""
    error = "\x1b[1;31merror:\x1b[0m" if _has_styles(sys.stderr) else "error:"
    _print_on_stderr(f"{error} {one_line(message)}")


def print_note(message: str) -> None:
    """Something the user should know, on stderr."""
    _print_on_stderr(printable(message))


def _print_on_stderr(text: str) -> None:
    # A closed stderr is None. A message that nobody reads does not end an ingest.
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def print_text(text: str) -> None:
    """A line of a result, on stdout."""
    with results():
        sys.stdout.write(printable(text) + "\n")


def print_prose(text: str) -> None:
    """A paragraph of a result, on stdout; a terminal's lines break between words."""
    width = shutil.get_terminal_size().columns
    print_text(textwrap.fill(text, width, subsequent_indent="  ") if is_terminal() else text)


def print_commands(commands: Sequence[tuple[str, str]]) -> None:
    """Commands to type, each with what it is for."""
    width = max(len(typed) for typed, _ in commands)
    for typed, said in commands:
        print_text(f"  {typed:{width}}  # {said}")


def is_terminal() -> bool:
    """Whether results go to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def _has_styles(stream: TextIO | None) -> bool:
    """Whether it goes to a terminal that has styles, for a user who wants them."""
    is_plain = os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR")
    return stream is not None and stream.isatty() and not is_plain


@contextmanager
def results() -> Iterator[None]:
    """Write results out at once; a reader that has had enough, `head` for one, ends us well."""
    if sys.stdout is None:
        print_error("cannot write the results: standard output is closed")
        raise typer.Exit(1)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(0) from None


# Paragraphs of text, as wide as the terminal.

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


# Rows in the format that the user asked for.


def print_captioned(rows: Rows, output: Format, *, wide: bool | None = None) -> None:
    """Print rows after what they are rows of, which is a note."""
    if rows.caption:
        print_note(rows.caption)
    print_rows(rows, output, wide=wide)


def print_rows(
    rows: Rows | pa.Table,
    output: Format,
    *,
    wide: bool | None = None,
    has_format: bool = True,
) -> None:
    """Print rows; where there are none, a table says so on stderr.

    A `wide` table is not fitted to the terminal; None if the command has no such option.
    has_format: the command has the option --format
    """
    found = rows if isinstance(rows, Rows) else Rows(rows)
    # It stands on stderr: rows in a pipe are rows alone.
    left_out = f"{found.left_out} (--all)" if found.left_out else ""
    with results():
        match output:
            case "csv":
                sys.stdout.writelines(csv_parts(found.table))
            case "json":
                sys.stdout.writelines(json_parts(found.table))
            case "markdown":
                sys.stdout.writelines(markdown_lines(found.table))
            case "table" if len(found):
                by_option = "--format csv" if wide is None else "--wide"
                remedy = by_option if has_format else "| cat"
                print_table(found.table, is_wide=bool(wide), remedy=remedy)
                for note in notes(found.table):
                    print_note(note)
            case _:
                print_note(found.empty)
        if left_out:
            print_note(left_out)


def print_table(rows: pa.Table, *, is_wide: bool, remedy: str) -> None:
    """Print rows; on a terminal too narrow for all columns the last ones are left out.

    A wide table is whole, and so is one in a pipe: it has no width, and what is cut is of no use to
    the next program. remedy: what shows the columns that are left out
    """
    columns = [Column(field, cells) for field, cells in text_columns(rows)]
    width = shutil.get_terminal_size().columns
    (heading, *lines), left_out = fitted_lines(
        columns, None if is_wide or not is_terminal() else width
    )
    if _has_styles(sys.stdout):
        heading = f"\x1b[1m{heading}\x1b[0m"
    sys.stdout.writelines(f"{line}\n" for line in (heading, *lines))
    if left_out:
        print_note(textwrap.fill(f"no room for: {', '.join(left_out)} ({remedy} has all)", width))


def print_json(value: Any) -> None:
    """Print a value of lists and objects."""
    with results():
        json.dump(plain(value), sys.stdout, indent=1, allow_nan=False)
        sys.stdout.write("\n")


# Rows as a Markdown table.

_ESCAPED = re.compile(r"[\\`*\[\]<|~]")
# GitHub tells whoever is named like this, wherever the name stands.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")


def markdown_lines(rows: pa.Table) -> Iterator[str]:
    """The lines of a table, with values as a person reads them, and of the notes to it."""
    columns = text_columns(rows)
    yield _line(field.name for field, _ in columns)
    yield _line("---:" if is_number(field.type) else "---" for field, _ in columns)
    for record in zip(*(cells for _, cells in columns), strict=True):
        yield _line(record)
    for note in notes(rows):
        yield f"\n{note}\n"


def as_text(words: str) -> str:
    """Words as text in a paragraph: no links, no emphasis, no code, no HTML."""
    return _without_mentions(_ESCAPED.sub(r"\\\g<0>", words))


def as_code(words: str) -> str:
    """Words as code."""
    longest = max(map(len, re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    # A space is left out again, and keeps a word's own ` apart.
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A cell's text as text: not the end of the cell, and not HTML, a link or an image."""
    for special in ("\\", "|", "<"):
        text = text.replace(special, f"\\{special}")
    return _without_mentions(text.replace("](", "]\\("))


def _without_mentions(text: str) -> str:
    return _MENTION.sub("@\u200b", text)
