"""`memhouse advise`: changes to a program that reduce its peak."""

from typing import Annotated

import typer

from ...advice.advice import Advice
from ...advice.finding import in_full
from ..opening import open_warehouse
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Module, RunOfModule, Space, Wait
from ..proving import print_proofs
from ..render.text import print_note, print_paragraph, print_rows, print_text, results

EXAMPLE = "memhouse advise llama-v5e --run 2026-10-08"


def advise(
    module: Module,
    db: Db = DEFAULT_DB,
    run: RunOfModule = None,
    target_saving: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Choose what to recompute to save SIZE.")
    ] = None,
    memory_space: Space = 0,
    recompile: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:BUILD",
            help="The function that builds this program, as for `memhouse fit`: compile it with"
            " each change that needs only options, and compare the saving with the advice.",
        ),
    ] = None,
    topology: Annotated[
        str, typer.Option(metavar="NAME", help="Target of --recompile: v5e:2x2, cpu, cpu:8.")
    ] = "cpu",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="Values of a keyword of BUILD, that of the program first; the others are compiled"
            " too: remat=none,full.",
        ),
    ] = None,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Show what to change in a program, and the peak reduction of each change.

    Each size is the difference of two replays of the program, with and without the change. Its
    grade is **exact**, **expected** within some percent, **between** two sizes, **at most**, or
    **estimated** if the dump is HLO text alone; a **fact** promises no saving.
    """
    with open_warehouse(db, wait) as warehouse:
        advice = warehouse.advise(
            module, run=run, target_saving=target_saving, memory_space=memory_space
        )
    print_note(advice.rows.caption)
    if output == "table":
        _print_advice(advice)
    if recompile is not None:
        print_proofs(advice, recompile, topology, grid or [], output)
    elif output != "table":
        print_rows(advice.rows, output)


def _print_advice(advice: Advice) -> None:
    """Print the parts of the peak, and a numbered paragraph per finding."""
    with results():
        print_paragraph(advice.heading)
        for number, (first, *lines) in enumerate(in_full(advice.findings), start=1):
            print_text("")
            margin = " " * len(f"{number:>2}. ")
            print_paragraph(first, f"{number:>2}. ", margin)
            for line in lines:
                print_paragraph(line, margin, f"{margin}       ")
        for sentence in filter(None, [advice.afterwards, advice.together_sentence]):
            print_text("")
            print_paragraph(sentence)
