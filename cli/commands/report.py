"""`memhouse report`: a page of charts and tables that opens in a browser."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ...compile.fit_answer import answer, stored
from ...compile.fitted import Fitted
from ...queries.modules import find_module
from ...queries.result import counted
from ...report.page import Report
from ...report.site import Site, file_name, is_report, write_site
from ...schema.readable import human_bytes
from ...schema.store import Store
from ..opening import reading
from ..parameters import (
    DEFAULT_DB,
    DEFAULT_WAIT,
    Branch,
    Db,
    RunOfModule,
    Since,
    Space,
    Wait,
    Workload,
    completer,
)
from ..render.text import print_note, results

EXAMPLE = "memhouse report llama-v5e -o llama.html"
_STDOUT = Path("-")
# What each kind of report takes besides its subject.
_TAKES = {
    "a module's report": {"--run", "--space", "--output"},
    "a comparison": {"--workload", "--output"},
    "--fit": {"--output"},
    "--history": {"--workload", "--branch", "--since", "--space", "--output"},
    "--site": set(),
}


def report(
    module: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE",
            help="A workload, module name, WORKLOAD/NAME, unique part of one, or module id.",
            show_default=False,
            autocompletion=completer("modules"),
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="Compare with this: two runs, or two modules as RUN/WORKLOAD/NAME.",
            show_default=False,
            autocompletion=completer("runs"),
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show all series over the runs instead.")
    ] = False,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:BUILD", help="Show what `memhouse fit` found of a program instead."
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write a site instead: the history and a page a module, linked."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; - is standard output."
        ),
    ] = None,
    run: RunOfModule = None,
    memory_space: Space = 0,
    workload: Workload = None,
    branch: Branch = None,
    since: Since = None,
    db: Db = DEFAULT_DB,
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Write a report as an HTML page: of a module, a diff, or the history.

    The file is named after what it shows, unless -o names it. A site is a folder with relative
    links, for GitHub Pages or a bucket; only pages that changed are written again.
    """
    given = {
        "--run": run,
        "--space": memory_space or None,
        "--workload": workload,
        "--branch": branch,
        "--since": since,
        "--output": file,
    }
    _require_one_report(module, other, history, fit, site, given)

    with reading(db, wait=wait) as store:
        if file is not None and store.holds(file):
            problem = f"{file} is of the warehouse itself: name another file"
            raise typer.BadParameter(problem, param_hint="--output")
        if site is not None:
            done = write_site(store, site)
            _tell_of_site(done)
            return
        if history:
            from ...report.history_report import history_report

            made = history_report(store, workload, since, memory_space, branch=branch)
            name = file_name("history", *filter(None, [workload, branch]))
        elif fit is not None:
            asked, points = stored(store, fit)
            made = Fitted(asked.name, *answer(asked, points)).report()
            name = file_name("fit", *asked.name.split(":"))
        elif module is not None and other is not None:
            from ...report.diff_report import diff_report

            made = diff_report(store, module, other, workload)
            name = f"{file_name(module)}..{file_name(other, *filter(None, [workload]))}"
        else:
            made, name = _of_module(store, str(module), run, memory_space)
    _write(made, file or Path(f"{name}.html"))


def _of_module(store: Store, module: str, run: str | None, space: int) -> tuple[Report, str]:
    """A module's report, and a name for its file."""
    from ...report.module_report import module_report

    found = find_module(store, module, run)
    told = [run, f"space{space}" if space else None]
    name = file_name(found.workload, found.module_name, *filter(None, told))
    return module_report(store, found, memory_space=space), name


def _require_one_report(
    module: str | None,
    other: str | None,
    history: bool,
    fit: str | None,
    site: Path | None,
    given: dict[str, Any],
) -> None:
    """Raise BadParameter for what does not go together, and for a file in no folder."""
    wholes = {"--history": history or None, "--fit": fit, "--site": site}
    kinds = [kind for kind, value in wholes.items() if value is not None]
    if kinds:
        kind, *others = kinds
        given = {"a module": module, **{other: wholes[other] for other in others}, **given}
    elif module is None:
        raise typer.BadParameter(
            "name a module, two runs or modules to compare, --history, --fit, or --site DIR"
        )
    else:
        kind = "a module's report" if other is None else "a comparison"
    for name, value in given.items():
        if value is not None and name not in _TAKES[kind]:
            raise typer.BadParameter(f"{kind} does not take {name}")
    file = given["--output"]
    if file is not None and file != _STDOUT and not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}", param_hint="--output")


def _write(made: Report, file: Path) -> None:
    """Write the report, and tell of its file."""
    if file == _STDOUT:
        with results():
            sys.stdout.buffer.write(made.html().encode())
        return
    if file.is_file() and not is_report(file):
        problem = f"{file} is not a report of memhouse: name another file"
        raise typer.BadParameter(problem, param_hint="--output")
    path = made.save(file)
    told = filter(None, [human_bytes(path.stat().st_size), made.gist])
    print_note(f"{path}: {', '.join(told)}")


def _tell_of_site(done: Site) -> None:
    print_note(
        f"{done.index}: {counted(len(done.written), 'page')} written, "
        f"{len(done.unchanged)} unchanged, {human_bytes(done.size_bytes)} in all"
    )
