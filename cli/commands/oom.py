"""`memhouse oom`: explain why memory ran out."""

import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from ... import read_oom
from ...oom.diagnosis import Oom, OomAnswer, explain
from ...queries.result import without_layout
from ...queries.runs import run_names
from ...schema.errors import MemhouseError, WarehouseBusyError, WarehouseError
from ...schema.readable import human_bytes
from ..errors import FAILED
from ..formats import Format
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db
from ..render.text import print_note, print_paragraph, print_rows, print_table, print_text

EXAMPLE = "memhouse oom train.log"
# Messages that are explained in full; the others are only listed.
_MAX_EXPLAINED = 2


def oom(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[LOG|RUN]",
            help="A log, - for standard input, or a run [default: the latest that ran out].",
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
            help="Wait at most SECONDS while another process uses the warehouse [default: "
            f"{DEFAULT_WAIT}; 0 with a LOG].",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain why memory ran out, in a run or by the messages of a log.

    A LOG is read, not stored, and needs no warehouse; if there is one, the dump of the module adds
    details. Sizes with ~ are rounded by XLA. csv and json have a row for each message. Exit status
    1 if there is no such message.
    """
    if target == "":
        raise typer.BadParameter("the name is empty: name a log, - for standard input, or a run")
    if target is not None and (target == "-" or _is_file(Path(target))):
        result = _explain_log(target, db, wait)
    else:
        result = _explain_run(target, db, wait)
    _print(result, output)
    if not result.answers:
        raise typer.Exit(FAILED)


def _is_file(path: Path) -> bool:
    return path.exists() and not path.is_dir()


def _explain_log(log: str, db: str, wait: float | None) -> Oom:
    result = read_oom(sys.stdin.buffer if log == "-" else log)
    if not result.answers or (db == DEFAULT_DB and not Path(db).exists()):
        return result
    try:
        with open_warehouse(db, wait or 0) as warehouse:
            return explain(warehouse.store, result.rows.arrow(), result.buffers.arrow(), log)
    except MemhouseError as error:
        print_note(f"answered without the warehouse: {error}")
        return result


def _explain_run(run: str | None, db: str, wait: float | None) -> Oom:
    hint = "see `memhouse runs`"
    try:
        with open_warehouse(db, DEFAULT_WAIT if wait is None else wait) as warehouse:
            if run is None or run in run_names(warehouse.store):
                return warehouse.oom(run)
    except WarehouseError as error:
        if run is None or isinstance(error, WarehouseBusyError):
            raise
        hint = str(error)
    if Path(run).is_dir():
        raise typer.BadParameter(f"{run} is a folder: ingest it, then name its run")
    raise typer.BadParameter(f"there is no log and no run {run!r}: {hint}")


def _print(result: Oom, output: Format) -> None:
    if output != "table" or not result.answers:
        print_rows(result.rows, output)
        return
    for index, answer in enumerate(result.told()[:_MAX_EXPLAINED]):
        if index:
            print_text("")
        _print_answer(answer)
    for answer in result.answers[_MAX_EXPLAINED:]:
        print_text(f"\nalso {answer.title}\n  {answer.facts[0] if answer.facts else ''}")


def _print_answer(answer: OomAnswer) -> None:
    """Print the explanation of one message."""
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
    """Rows as strings: size (~: rounded by XLA), buffers, line and shape."""
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
