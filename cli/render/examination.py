"""The contents of a path, as `memhouse doctor` and `memhouse ingest --dry-run` print them."""

from pathlib import Path

from ...ingest.dry_run import examine
from ...ingest.nothing_found import nothing_found
from ...ingest.sources.files import exists
from ...queries.result import counted
from ...schema.readable import command
from .text import print_error, print_note, print_rows, print_text


def print_examination(path: Path) -> bool:
    """Print the files, programs and answered questions of a path.

    Returns:
        Whether it has a program or a log.
    """
    if not exists(path):
        print_error(f"{path}: there is no such file or folder")
        return False
    dump = examine(path)
    for problem in dump.problems:
        print_error(problem)
    if len(dump.files):
        columns = ["what", "files", "size_bytes", "ingest"]
        print_rows(dump.files.select(columns), "table", has_format=False)
    if dump.programs:
        platforms = [f"{name} {count}" for name, count in dump.platforms.items()]
        targets = ", ".join([*platforms, *(f"libtpu cl_{name}" for name in dump.compilers)])
        programs = counted(dump.programs, "program")
        print_text(f"\n{programs}: {targets}\n" if targets else f"\n{programs}\n")
        print_rows(dump.questions, "table", has_format=False)
    for hint in dump.hints:
        print_note(hint)
    if dump.logs and not dump.programs:
        remedy = command("oom", names=dump.logs[:1])
        print_note(f"if memory ran out, this command explains the log: {remedy}")
    elif not dump.programs and not dump.problems:
        print_error(nothing_found(path))
    return bool(dump.programs or dump.logs)
