"""Messages on stderr and lines of a result on stdout, without control characters."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer


def print_error(message: str) -> None:
    """An error, on one line of stderr."""
    from ...queries.cells import one_line

    if sys.stderr is None or not sys.stderr.isatty():
        _print_on_stderr(f"error: {one_line(message)}")
        return
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, soft_wrap=True, emoji=False).print(
        f"[bold red]error:[/] {escape(one_line(message))}", highlight=False
    )


def print_note(message: str) -> None:
    """Something the user should know, on stderr."""
    from ...queries.cells import printable

    _print_on_stderr(printable(message))


def _print_on_stderr(text: str) -> None:
    # A closed stderr is None. A message that nobody reads does not end an ingest.
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def print_text(text: str) -> None:
    """A line of a result, on stdout."""
    from ...queries.cells import printable

    with results():
        sys.stdout.write(printable(text) + "\n")


def print_prose(text: str) -> None:
    """A paragraph of a result, on stdout; a terminal's lines break between words."""
    width = shutil.get_terminal_size().columns
    print_text(textwrap.fill(text, width) if is_terminal() else text)


def is_terminal() -> bool:
    """Whether results go to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


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
