"""Reports in a browser: seconds to write, size, and the work of the browser.

    python benchmarks/report_load.py DUMPS

The reports of the large module and of a smaller one, `llama-v5e` if it is there.
The browser's work is CPU time of the page's main thread.
Needs Chromium with its driver; without these the rows of the browser say why they are empty.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import Bench, measure
from figures import Figure
from process import Finished, ProcessError, memhouse

import memhouse as library

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.support.browser import Browser, browser, missing

_WRITE_SECONDS = 4.0
_LOAD_SECONDS = 2.5
_PAN_MS = 150.0
_LARGE_BYTES = 4 << 20
_SMALL_BYTES = 5 << 19
_MAP = "address_map"
_STEPS = 12


@dataclass(frozen=True)
class Opened:
    """The work of one opened report: seconds to load, milliseconds a pan and a hover."""

    load_seconds: float
    pan_ms: float
    hover_ms: float


def report_load(bench: Bench) -> list[Figure]:
    """Write the reports of a large and of a small module, open them, pan and hover."""
    return [
        *_of_report(bench, "large module", bench.dumps.large_warehouse, None, _LARGE_BYTES),
        *_of_report(bench, "small module", bench.dumps.warehouse, _SMALL, _SMALL_BYTES),
    ]


def _of_report(
    bench: Bench, what: str, warehouse: Path, query: str | None, most_bytes: int
) -> Iterator[Figure]:
    path = bench.new_path("report.html")
    module = _module(warehouse, query or _LARGEST)

    def write() -> Finished:
        return memhouse("report", "--db", warehouse, str(module), "-o", path)

    write()
    written = [write() for _ in range(bench.few_rounds)]
    yield Figure(
        f"report of the {what}, written", [run.seconds for run in written], "s", _WRITE_SECONDS
    )
    yield Figure(f"report of the {what}, size", [path.stat().st_size], "bytes", most_bytes)
    opened, why = [], missing() or ""
    if not why:
        with browser() as window:
            opened = [_opened(window, path) for _ in range(bench.few_rounds + 1)][1:]
    for does, unit, values, limit in (
        ("load, CPU", "s", [one.load_seconds for one in opened], _LOAD_SECONDS),
        ("a pan, CPU", "ms", [one.pan_ms for one in opened], _PAN_MS),
        ("a hover, CPU", "ms", [one.hover_ms for one in opened], None),
    ):
        yield Figure(f"report of the {what}, {does}", values, unit, limit, parts=why)


def _opened(window: Browser, path: Path) -> Opened:
    """Open a report, zoom into its map and pan there in steps, then hover over it."""
    load = window.open(path)
    frame = window.frame(_MAP)
    middle = (frame["left"] + frame["width"] / 2, frame["top"] + frame["height"] / 2)
    window.value("probes.dragWith(given[0], 'PanTool')", _MAP)
    aside = (middle[0] - frame["width"] / 4, middle[1])
    # A map that is shown whole cannot be moved.
    window.zoom(*middle, turns=2)
    before = window.value("probes.range(given[0])", _MAP)
    pan = window.drag(middle, aside, _STEPS)
    if window.value("probes.range(given[0])", _MAP) == before:
        raise ProcessError("the map does not move")
    places = [
        (frame["left"] + frame["width"] * (step + 0.5) / _STEPS, middle[1])
        for step in range(_STEPS)
    ]
    hover = window.hover(places)
    return Opened(
        load.task_seconds, 1000 * pan.task_seconds / _STEPS, 1000 * hover.task_seconds / _STEPS
    )


def _module(warehouse: Path, query: str) -> Any:
    with library.open(warehouse, read_only=True) as opened:
        return opened.sql(query).arrow().to_pylist()[0]["module_id"]


_LARGEST = """
SELECT module_id
FROM module_memory
WHERE memory_space = 0
ORDER BY peak_bytes DESC
LIMIT 1
"""
# The module that the targets name, else the one of the smallest peak.
_SMALL = """
SELECT dumps.module_id
FROM dumps
INNER JOIN module_memory ON module_memory.module_id = dumps.module_id
WHERE module_memory.memory_space = 0
ORDER BY dumps.workload <> 'llama-v5e', module_memory.peak_bytes
LIMIT 1
"""

if __name__ == "__main__":
    measure([report_load])
