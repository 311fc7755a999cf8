"""`memhouse label`: the labels of runs."""

from typing import Annotated

import typer

from ...queries.label import hint_at_branches, rename_label
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait, completer
from ..render.text import print_note, print_rows

EXAMPLE = "memhouse label 2026-10-08 branch=main"


def label(
    runs_and_labels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN… [KEY=VALUE…]",
            help="Runs, then labels to set; KEY= removes one. The first is always a run.",
            show_default=False,
            autocompletion=completer("runs"),
        ),
    ] = None,
    rename: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=OLD:NEW", help="Change the value of a label in all runs that have it."
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Set labels of runs, for example branch=main; without KEY=VALUE show them.

    The runs of a branch are one history, which is recomputed. A branch that was renamed keeps its
    history: `--rename branch=OLD:NEW`. The label `entry` names programs that are listed and checked
    even if they are small: `entry=jit_generate,jit_evaluate`.
    """
    if (rename is None) == (not runs_and_labels):
        raise typer.BadParameter("name the runs to label, or pass --rename")
    runs, labels = _parse(runs_and_labels or [])
    if rename is None and not labels:
        with open_warehouse(db, wait) as warehouse:
            print_rows(warehouse.label(*runs), output)
        return
    with open_warehouse(db, wait, write=True) as warehouse:
        if rename is not None:
            lines = rename_label(warehouse.store, rename)
        else:
            with hint_at_branches(warehouse.store, labels) as hints:
                warehouse.label(*runs, labels=labels)
            pairs = " ".join(f"{key}={value}" for key, value in labels.items())
            lines = [f"labelled {', '.join(runs)}: {pairs}", *hints]
    for line in lines:
        print_note(line)


def _parse(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Split the arguments into runs and labels; the first is a run, even if it contains `=`."""
    runs = arguments[:1]
    labels: dict[str, str] = {}
    for argument in arguments[1:]:
        key, equals, value = argument.partition("=")
        if not equals and labels:
            raise typer.BadParameter(f"name the run {argument!r} before the labels")
        if not equals:
            runs.append(argument)
        elif not key:
            raise typer.BadParameter("a label is KEY=VALUE")
        else:
            labels[key] = value
    return runs, labels
