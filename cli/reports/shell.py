"""The SQL prompt: queries end with `;`, a line that starts with `.` is a command."""

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import sqlalchemy as sa
import typer

from ...queries.catalogue import command_query
from ...schema.stores.duckdb import fetch
from ..options import Format
from ..render.output import print_error, print_note, print_rows
from ..warehouse import reading
from .sql import sql_error

_HELP = """\
.tables           list the tables and views
.schema NAME      show a table's or view's columns
.format FORMAT    print rows as table, csv, json or markdown
.help             show this
.quit             leave (also Ctrl-D)
A query may span lines and ends with a semicolon."""


def open_shell(db: str, output: Format) -> None:
    """Open the prompt on the warehouse, which it can only read."""
    with reading(db) as connection:
        run_shell(connection, db, output)


def run_shell(connection: sa.Connection, name: str, output: Format) -> None:
    """Read queries and commands until the end, from the terminal or from a pipe."""
    interactive = sys.stdin.isatty()
    statements = _prompted(connection, name) if interactive else _piped()
    failed = False
    for statement in statements:
        command, _, argument = statement.strip().partition(" ")
        if command in (".quit", ".exit"):
            break
        if command == ".format" and argument.strip() in list(Format):
            output = Format(argument.strip())
        elif command.startswith("."):
            failed |= not _run_command(connection, command, argument.strip().rstrip(";"), output)
        else:
            failed |= not _run_query(connection, statement, output)
    if failed and not interactive:
        raise typer.Exit(1)


def _run_query(connection: sa.Connection, query: str, output: Format) -> bool:
    try:
        print_rows(fetch(connection, query), output)
    except duckdb.Error as error:
        connection.rollback()
        print_error(sql_error(error))
        return False
    return True


def _run_command(connection: sa.Connection, command: str, argument: str, output: Format) -> bool:
    match command:
        case ".help":
            print_note(_HELP)
        case ".tables":
            print_rows(fetch(connection, command_query("relations")), output)
        case ".schema" if argument:
            columns = fetch(connection, command_query("columns"), [argument])
            print_rows(columns, output, empty=f"no table {argument}")
        case _:
            print_error(f"unknown command {command} {argument}".strip() + ": see .help")
            return False
    return True


def _piped() -> Iterator[str]:
    """Statements from standard input: what ends with `;`, lines that start with `.`."""
    pending = ""
    for line in sys.stdin:
        if not pending.strip() and line.startswith("."):
            yield line
            continue
        pending += line
        if _is_complete(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def _is_complete(text: str) -> bool:
    """Whether a query is whole: DuckDB itself tells a `;` from one in quotes."""
    if not text.rstrip().endswith(";"):
        return False
    try:
        return len(duckdb.extract_statements(text)) > 0
    except duckdb.Error:
        return True  # wrong anyway: let DuckDB say how


def _prompted(connection: sa.Connection, name: str) -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import PostgresLexer

    folder = Path(typer.get_app_dir("memhouse"))
    folder.mkdir(parents=True, exist_ok=True)
    words = [row[0] for row in connection.exec_driver_sql(command_query("words"))]
    keys = KeyBindings()
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(folder / "history")),
        lexer=PygmentsLexer(PostgresLexer),
        completer=WordCompleter(words, ignore_case=True),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation="     ...> ",
        key_bindings=keys,
    )

    @Condition
    def is_whole() -> bool:
        text = session.default_buffer.text
        return not text.strip() or text.startswith(".") or _is_complete(text)

    @keys.add("enter", filter=is_whole)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    print_note(f"{name}: .help for help, .tables for what there is, Ctrl-D to leave")
    while True:
        try:
            text = session.prompt("memhouse> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            yield text
