"""What all benchmarks share: the dumps, the options, and how results are shown and kept."""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa
from dumps import Dumps, lay_out
from environment import environment, finished
from figures import Figure
from process import Finished, ProcessError

from memhouse.cli.render.text import print_note, print_rows
from memhouse.queries.result import Rows

_SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "dumps"


@dataclass
class Bench:
    """The input of a benchmark: a temporary folder, the dumps and the options.

    `warehouses_of_runs` are those already made, by their number of runs.
    """

    folder: Path
    dumps: Dumps
    options: argparse.Namespace
    warehouses_of_runs: dict[int, Path] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def rounds(self) -> int:
        """How often each process runs, after a round to warm up."""
        return int(self.options.rounds)

    @property
    def few_rounds(self) -> int:
        """The same for processes that take long."""
        return max(1, (self.rounds + 1) // 2)

    def new_path(self, name: str) -> Path:
        """An unused path in the temporary folder."""
        return self.folder / f"{next(self._numbers)}-{name}"


Benchmark = Callable[[Bench], list[Figure]]


def seconds(runs: Sequence[Finished]) -> float:
    """The median time of the runs."""
    return median(run.seconds for run in runs)


def measure(benchmarks: Sequence[Benchmark]) -> None:
    """Run the benchmarks with the command line's options, and print one table."""
    options = _options(benchmarks)
    chosen = [b for b in benchmarks if not options.only or b.__name__ in options.only]
    around = environment()
    figures: list[Figure] = []
    try:
        with TemporaryDirectory(prefix="memhouse-bench-") as folder:
            print_note("laying out the dumps …")
            bench = Bench(Path(folder), lay_out(options.dumps, Path(folder, "dumps")), options)
            for benchmark in chosen:
                print_note(f"{benchmark.__name__} …")
                figures += benchmark(bench)
                # Written after each benchmark, because the next one may fail.
                if options.json:
                    write_results(options.json, finished(around), figures)
    except ProcessError as error:
        sys.exit(f"a measured command failed: {error}")
    print_rows(Rows(pa.Table.from_pylist([figure.shown() for figure in figures])), "markdown")
    print("\n" + ", ".join(f"{name} {value}" for name, value in finished(around).items()))


def write_results(path: Path, around: dict[str, str], figures: Sequence[Figure]) -> None:
    """Write what was measured and where, for `compare.py`."""
    results = {"environment": around, "figures": [figure.as_json() for figure in figures]}
    path.write_text(json.dumps(results, indent=1) + "\n")


def _options(benchmarks: Sequence[Benchmark]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "dumps", metavar="DUMPS", nargs="?", type=Path, default=_SAMPLES, help="see README.md"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results there")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        choices=[benchmark.__name__ for benchmark in benchmarks],
        help="run this benchmark alone; can be given several times",
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each process")
    parser.add_argument("--modules", type=int, default=10, help="different modules of a folder")
    parser.add_argument("--copies", type=int, default=4, help="copies of modules, at least")
    parser.add_argument("--grown", type=int, default=128, help="modules at the curve's end")
    parser.add_argument("--programs", type=int, default=1000, help="programs of a night")
    parser.add_argument("--nights", type=int, default=365, help="runs of the year")
    parser.add_argument("--runs", type=int, default=1000, help="runs at the curve's end")
    parser.add_argument("--series", type=int, default=100, help="series of the year")
    parser.add_argument("--values", type=int, default=8000, help="nested values")
    parser.add_argument(
        "--no-xprof", dest="xprof", action="store_false", help="do not install or run XProf"
    )
    return parser.parse_args()
