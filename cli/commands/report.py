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
from ...report.site import file_name, is_report
from ...schema.readable import human_bytes
from ..opening import open_warehouse
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
# Options of each kind of report.
_OPTIONS = {
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
            help="Compare the first with B: two runs, or two modules as RUN/WORKLOAD/NAME.",
            show_default=False,
            autocompletion=completer("runs"),
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show all series over the runs.")
    ] = False,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:BUILD", help="Show the results of `memhouse fit` for a program."
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write a site: linked pages of the history and of each module."
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

    Without -o, the file is named after its subject. A site is a folder with relative links, for
    GitHub Pages or a bucket; only changed pages are rewritten.
    """
    options = {
        "--run": run,
        "--space": memory_space or None,
        "--workload": workload,
        "--branch": branch,
        "--since": since,
        "--output": file,
    }
    _require_one_report(module, other, history, fit, site, options)

    with open_warehouse(db, wait) as warehouse:
        store = warehouse.store
        if file is not None and store.holds(file):
            problem = f"{file} is a file of the warehouse: name another file"
            raise typer.BadParameter(problem, param_hint="--output")
        if site is not None:
            written = warehouse.report_site(site)
            print_note(
                f"{written.index}: {counted(len(written.written), 'page')} written, "
                f"{len(written.unchanged)} unchanged, {human_bytes(written.size_bytes)} in all"
            )
            return
        if history:
            page = warehouse.report_history(
                workload, since=since, branch=branch, memory_space=memory_space
            )
            name = file_name("history", *filter(None, [workload, branch]))
        elif fit is not None:
            search, points = stored(store, fit)
            page = Fitted(search.name, *answer(search, points)).report()
            name = file_name("fit", *search.name.split(":"))
        elif module is not None and other is not None:
            page = warehouse.report_diff(module, other, workload=workload)
            name = f"{file_name(module)}..{file_name(other, *filter(None, [workload]))}"
        else:
            match = find_module(store, str(module), run)
            page = warehouse.report(str(module), run=run, memory_space=memory_space)
            suffix = [run, f"space{memory_space}" if memory_space else None]
            name = file_name(match.workload, match.module_name, *filter(None, suffix))
    _write(page, file or Path(f"{name}.html"))


def _require_one_report(
    module: str | None,
    other: str | None,
    history: bool,
    fit: str | None,
    site: Path | None,
    options: dict[str, Any],
) -> None:
    """Raise BadParameter for options that exclude each other, and for a file in no folder."""
    kinds = {"--history": history or None, "--fit": fit, "--site": site}
    requested = [kind for kind, value in kinds.items() if value is not None]
    if requested:
        kind, *extra = requested
        options = {"a module": module, **{name: kinds[name] for name in extra}, **options}
    elif module is None:
        raise typer.BadParameter(
            "name a module, two runs or modules to compare, --history, --fit, or --site DIR"
        )
    else:
        kind = "a module's report" if other is None else "a comparison"
    for name, value in options.items():
        if value is not None and name not in _OPTIONS[kind]:
            raise typer.BadParameter(f"{name} cannot be combined with {kind}")
    file = options["--output"]
    if file is not None and file != _STDOUT and not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}", param_hint="--output")


def _write(page: Report, file: Path) -> None:
    """Write a report, and print the file's path, size and main value."""
    if file == _STDOUT:
        with results():
            sys.stdout.buffer.write(page.html().encode())
        return
    if file.is_file() and not is_report(file):
        problem = f"{file} is not a report of memhouse: name another file"
        raise typer.BadParameter(problem, param_hint="--output")
    path = page.save(file)
    facts = filter(None, [human_bytes(path.stat().st_size), page.gist])
    print_note(f"{path}: {', '.join(facts)}")
