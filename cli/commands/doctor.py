"""`memhouse doctor`: what in a folder is what, and what it lacks."""

from pathlib import Path
from typing import Annotated

import typer

from ..options import Format

EXAMPLE = "memhouse doctor dumps/2026-10-08"


def doctor(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A dump folder, an archive or a file.")
    ],
) -> None:
    """Say what in PATH is what, which questions it answers, and what would answer the others.

    Nothing is stored. The exit status is 1 if there is no program and no log.
    """
    from ...ingest.doctor import examine, nothing_found
    from ...ingest.sources.files import exists
    from ...queries.cells import counted
    from ...schema.readable import command
    from ..errors import FAILED
    from ..render.text import print_error, print_note, print_rows, print_text

    if not exists(path):
        print_error(f"{path}: there is no such file or folder")
        raise typer.Exit(FAILED)
    found = examine(path)
    for problem in found.problems:
        print_error(problem)
    if len(found.files):
        print_rows(found.files.select(["what", "files", "size_bytes", "ingest"]), Format.table)
    if found.programs:
        platforms = [f"{name} {number}" for name, number in found.platforms.items()]
        compilers = [f"libtpu cl_{name}" for name in found.compilers]
        of = ", ".join([*platforms, *compilers])
        programs = counted(found.programs, "program")
        print_text(f"\n{programs}: {of}\n" if of else f"\n{programs}\n")
        print_rows(found.questions, Format.table)
    for hint in found.hints:
        print_note(hint)
    if found.logs and not found.programs:
        print_note(
            f"{command('oom', names=found.logs[:1])} says why memory ran out, if the log tells"
        )
    elif not found.programs:
        if not found.problems:
            print_error(nothing_found(path))
        raise typer.Exit(FAILED)
