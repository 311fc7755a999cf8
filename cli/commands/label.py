"""`memhouse label`: the labels of runs."""

from typing import Annotated

import typer

from ...queries.label import hint_at_branches, rename_label
from ...queries.label import label as set_labels
from ..opening import reading, writing
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait, completer
from ..render.text import print_note, print_rows

EXAMPLE = "memhouse label 2026-10-08 branch=main"


def label(
    given: Annotated[
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
        typer.Option(metavar="KEY=OLD:NEW", help="Give all runs with a label another value of it."),
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Set labels of runs, for example branch=main; without KEY=VALUE show them.

    Runs of one branch follow each other in the history, which is worked out anew. A branch that
    was renamed keeps its history: `--rename branch=OLD:NEW`. The label `entry` names programs that
    are shown and judged though they are small: `entry=jit_generate,jit_evaluate`.
    """
    if (rename is None) == (not given):
        raise typer.BadParameter("name the runs to label, or what to --rename")
    runs, labels = _parse(given or [])

    if rename is not None:
        with writing(db, wait=wait) as store:
            told = rename_label(store, rename)
        for line in told:
            print_note(line)
        return
    if not labels:
        with reading(db, wait=wait) as store:
            print_rows(set_labels(store, runs), output)
        return
    with writing(db, wait=wait) as store, hint_at_branches(store, labels) as hints:
        set_labels(store, runs, labels)
    what = " ".join(f"{key}={value}" for key, value in labels.items())
    print_note(f"labelled {', '.join(runs)}: {what}")
    for hint in hints:
        print_note(hint)


def _parse(given: list[str]) -> tuple[list[str], dict[str, str]]:
    """The runs and the labels: the first is a run, whatever its name."""
    runs = given[:1]
    labels: dict[str, str] = {}
    for text in given[1:]:
        key, equals, value = text.partition("=")
        if not equals and labels:
            raise typer.BadParameter(f"name the run {text!r} before the labels")
        if not equals:
            runs.append(text)
        elif not key:
            raise typer.BadParameter("a label is KEY=VALUE")
        else:
            labels[key] = value
    return runs, labels
