"""`memhouse oom`: why memory ran out, and what to look at first."""

import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from ... import read_oom
from ...oom.diagnosis import Oom, OomAnswer, explain
from ...oom.diagnosis import oom as find
from ...queries.result import without_layout
from ...queries.runs import run_names
from ...schema.errors import MemhouseError, WarehouseBusyError, WarehouseError
from ...schema.readable import human_bytes
from ..errors import FAILED
from ..opening import reading
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db
from ..render.text import Format, print_note, print_paragraph, print_rows, print_table, print_text

EXAMPLE = "memhouse oom train.log"
# So many messages are told in full, the others in a line each.
_TOLD = 2


def oom(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[LOG|RUN]",
            help="A log, - for standard input, or a run; else the latest run that ran out.",
            show_default=False,
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Wait at most SECONDS while another process uses the warehouse; else "
            f"{DEFAULT_WAIT}, and with a LOG 0.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain why memory ran out, in a run or by the messages of a log.

    A LOG is read, not stored, and needs no warehouse; with one, the dump of the module tells
    more. Sizes with ~ are rounded by XLA. csv and json have a row for each message. The exit
    status is 1 if nothing says that memory ran out.
    """
    if target == "":
        raise typer.BadParameter("the name is empty: name a log, - for standard input, or a run")
    if target is not None and (target == "-" or _is_file(Path(target))):
        found = _of_log(target, db, wait)
    else:
        found = _of_run(target, db, wait)
    _print(found, output)
    if not found.answers:
        raise typer.Exit(FAILED)


def _is_file(path: Path) -> bool:
    return path.exists() and not path.is_dir()


def _of_log(target: str, db: str, wait: float | None) -> Oom:
    found = read_oom(sys.stdin.buffer if target == "-" else target)
    if not found.answers or (db == DEFAULT_DB and not Path(db).exists()):
        return found
    try:
        with reading(db, wait=wait or 0) as store:
            return explain(store, found.rows.arrow(), found.buffers.arrow(), target)
    except MemhouseError as error:
        print_note(f"answered without the warehouse: {error}")
        return found


def _of_run(target: str | None, db: str, wait: float | None) -> Oom:
    what = "see `memhouse runs`"
    try:
        with reading(db, wait=DEFAULT_WAIT if wait is None else wait) as store:
            if target is None or target in run_names(store):
                return find(store, target)
    except WarehouseError as error:
        if target is None or isinstance(error, WarehouseBusyError):
            raise
        what = str(error)
    if Path(target).is_dir():
        raise typer.BadParameter(f"{target} is a folder: ingest it, then name its run")
    raise typer.BadParameter(f"there is no log and no run {target!r}: {what}")


def _print(found: Oom, output: Format) -> None:
    if output != "table" or not found.answers:
        print_rows(found.rows, output)
        return
    for place, answer in enumerate(found.told()[:_TOLD]):
        if place:
            print_text("")
        _print_answer(answer)
    for answer in found.answers[_TOLD:]:
        print_text(f"\nalso {answer.title}\n  {answer.facts[0] if answer.facts else ''}")


def _print_answer(answer: OomAnswer) -> None:
    """Print what is to be said of one message to a person, in a few lines."""
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
