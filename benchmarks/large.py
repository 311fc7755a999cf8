"""Ingest of the large module beside XProf's memory viewer on the same module."""

import shutil
from pathlib import Path
from statistics import median

from bench import Bench, measure, seconds
from figures import Figure
from process import Finished, in_turn, memhouse, run
from xprof_python import NotMeasuredError, xprof_python

_LIMIT = 1.0
_CPU_LIMIT = 1.4
_VIEWER = Path(__file__).parent / "viewer.py"


def large(bench: Bench) -> list[Figure]:
    """Time `memhouse ingest` into a new warehouse, and XProf if XProf is installed."""
    what = "ingest of the large module / XProf's memory viewer"

    def ours() -> Finished:
        return memhouse("ingest", "--db", bench.new_path("large.duckdb"), bench.dumps.large)

    try:
        python = xprof_python(bench)
        folder, module = _for_xprof(bench)
        run(python, "-P", _VIEWER, folder, module, "check")
    except NotMeasuredError as error:
        (mine,) = in_turn(bench.rounds, ours)
        beside = Figure(what, (), limit=_LIMIT, parts=str(error))
        theirs_cpu = ""
    else:
        mine, theirs = in_turn(
            bench.rounds, ours, lambda: run(python, "-P", _VIEWER, folder, module)
        )
        beside = Figure(
            what,
            [a.seconds / b.seconds for a, b in zip(mine, theirs, strict=True)],
            limit=_LIMIT,
            parts=f"{seconds(mine):.2f} s / {seconds(theirs):.2f} s",
        )
        theirs_cpu = f"XProf {median(run.cpu_seconds for run in theirs):.2f} s"
    return [
        beside,
        Figure("ingest of the large module", [run.seconds for run in mine], "s"),
        Figure(
            "ingest of the large module, CPU seconds",
            [run.cpu_seconds for run in mine],
            "s",
            _CPU_LIMIT,
            parts=theirs_cpu,
        ),
    ]


def _for_xprof(bench: Bench) -> tuple[Path, str]:
    """A folder for XProf with an empty profile and the module, and the module's name."""
    found = sorted(bench.dumps.large.rglob("*.after_optimizations.hlo.pb"))
    if not found:
        raise NotMeasuredError("the large module has no .hlo.pb")
    module = found[0].name.split(".")[1]
    folder = bench.new_path("xprof")
    folder.mkdir()
    (folder / "host.xplane.pb").touch()
    shutil.copyfile(found[0], folder / f"{module}.hlo_proto.pb")
    return folder, module


if __name__ == "__main__":
    measure([large])
