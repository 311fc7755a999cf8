"""`memhouse fit`: find the largest batch that fits a device."""

from pathlib import Path
from typing import Annotated

import typer

from ... import __version__
from ...compile.fit import Fit
from ...compile.fit_answer import answer
from ...compile.fit_axes import Asked, parse_axes, parse_share, parse_target
from ...compile.fitted import Fitted
from ...compile.record import ending_well
from ...queries.arguments import parse_device_memory, parse_size
from ...schema.readable import human_bytes
from ..formats import Format
from ..opening import ingesting
from ..parameters import DEFAULT_DB, DEFAULT_WAIT, AsFormat, Db, Wait
from ..render.text import is_terminal, print_note, print_prose, print_rows, results

EXAMPLE = "memhouse fit train.py:build --batch 8..512 --topology v5e:2x2"
# The keywords of the user's function are options too.
CONTEXT = {"ignore_unknown_options": True}
_INTERRUPTED = 130


def fit(
    program: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:BUILD",
            help="The function that returns a jitted function and the tuple of its arguments.",
            show_default=False,
        ),
    ],
    keywords: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="--KEYWORD VALUE",
            help="A keyword of BUILD: 8..512 is searched, none,full are both tried, 12 is fixed.",
            show_default=False,
        ),
    ] = None,
    topology: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Target devices: v5e:2x2, v6e:2x2, cpu, cpu:8, h100.pbtxt."
        ),
    ] = "cpu",
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory for a program [default: that of the TPU]."),
    ] = None,
    align: Annotated[int, typer.Option(metavar="N", min=1, help="Search only multiples of N.")] = 1,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="Try each of these values of a keyword."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Compile at most N programs.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Search to the last step, also above 1000.")
    ] = False,
    reserve: Annotated[
        str, typer.Option(metavar="PERCENT", help="Share of the memory to keep free.")
    ] = "0%",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Skip a program that takes longer.")
    ] = 900,
    ram: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Skip a program that needs more to compile [default: 90 % of the host's memory].",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Compile N programs concurrently."),
    ] = 1,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the answer as an HTML page.")
    ] = None,
    db: Db = DEFAULT_DB,
    output: AsFormat = "table",
    wait: Wait = DEFAULT_WAIT,
) -> None:
    """Find the largest batch, or any other size, that fits; nothing is run.

    BUILD is called with the options that are its keywords: `--batch 8..512` is searched,
    `--remat none,full` are both tried, `--layers 12` is fixed. It returns a jitted function and the
    tuple of its arguments, for example of `jax.ShapeDtypeStruct`. A parameter `devices` receives
    the devices of the topology, for shardings. The smallest size is compiled first, then the
    largest; the sizes nearest to the device's memory predict the next, until the largest size that
    fits and the next larger one are both compiled.

    The knee is the largest size that fits without recomputation: near the limit XLA trades memory
    for work. Each point is a run with the labels fit, topology and the keywords, on the branch fit,
    so that it is not part of another history. A program in the warehouse is not compiled again.
    """
    target, function = parse_target(program)
    search = Fit(
        Asked(
            target,
            function,
            parse_axes(keywords or [], grid or [], align),
            topology.split(","),
            parse_device_memory(memory, "memory"),
            budget,
            exact,
            parse_share(reserve),
            timeout,
            parse_size(ram, "ram", "memory"),
            jobs,
        ),
        lambda: ingesting(db),
        tool_version=__version__,
        wait=wait,
        progress=print_note,
    )
    try:
        # SIGTERM and SIGHUP end the compiler too.
        with ending_well():
            search.run()
    except KeyboardInterrupt:
        search.problems.append("interrupted: compiled programs are kept")
        _print(search, output, report)
        raise typer.Exit(_INTERRUPTED) from None
    _print(search, output, report)
    if not any(point.outcome == "fits" for point in search.points):
        raise typer.Exit(1)


def _print(search: Fit, output: Format, report: Path | None) -> None:
    result = Fitted(
        search.asked.name, *answer(search.asked, search.points), problems=search.problems
    )
    for problem in result.problems:
        print_note(problem)
    if output == "table":
        for sentence in result.answers:
            print_prose(sentence)
        if result.policies and is_terminal():
            from ..render.chart import print_policies

            with results():
                print_policies(result.policies, result.searched)
    print_rows(result.rows, output)
    if report is not None:
        path = result.report().save(report)
        print_note(f"{path}: {human_bytes(path.stat().st_size)}")
