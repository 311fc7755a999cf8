"""What all benchmarks share: the dumps, the options and the rows of the result."""

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa
from dumps import Dumps, lay_out
from process import Finished

from memhouse.cli.options import Format
from memhouse.cli.render.rows import print_rows
from memhouse.cli.render.text import print_note
from memhouse.queries.result import Rows

_SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "dumps"


@dataclass(frozen=True)
class Row:
    """A row of the result: the quantity, the measured value and the target."""

    what: str
    measured: str
    target: str = ""


@dataclass
class Bench:
    """The input of a benchmark: a temporary folder, the dumps and the options."""

    folder: Path
    dumps: Dumps
    rounds: int
    modules: int
    copies: int
    nights: int
    series: int
    xprof: bool
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_path(self, name: str) -> Path:
        """An unused path in the temporary folder."""
        return self.folder / f"{next(self._numbers)}-{name}"


def seconds(runs: Sequence[Finished]) -> float:
    """The median time of the runs."""
    return median(run.seconds for run in runs)


def verdict(value: float, limit: float, shown: str) -> str:
    """A target, and whether the value meets the target."""
    return f"<= {shown}: {'met' if value <= limit else 'missed'}"


def ratio_row(what: str, ratios: Sequence[float], limit: float, parts: str) -> Row:
    """A row for the median of the rounds' ratios; `parts` shows the two quantities."""
    ratio = median(ratios)
    return Row(what, f"{ratio:.2f} ({parts})", verdict(ratio, limit, f"{limit:g}"))


def measure(benchmarks: Sequence[Callable[[Bench], list[Row]]]) -> None:
    """Run the benchmarks with the command line's options, and print one table."""
    options = _options()
    rows = []
    with TemporaryDirectory(prefix="memhouse-bench-") as folder:
        bench = Bench(
            Path(folder),
            lay_out(options.dumps, Path(folder, "dumps")),
            options.rounds,
            options.modules,
            options.copies,
            options.nights,
            options.series,
            options.xprof,
        )
        for benchmark in benchmarks:
            print_note(f"{benchmark.__name__} …")
            rows += benchmark(bench)
    print_rows(Rows(pa.Table.from_pylist([vars(row) for row in rows])), Format.markdown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "dumps", metavar="DUMPS", nargs="?", type=Path, default=_SAMPLES, help="see README.md"
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each process")
    parser.add_argument("--modules", type=int, default=10, help="modules of a folder of several")
    # At least two, because a single module is read by one process alone.
    parser.add_argument("--copies", type=int, default=4, help="copies of modules, for memory")
    parser.add_argument("--nights", type=int, default=365, help="runs of the year")
    parser.add_argument("--series", type=int, default=100, help="series of the year")
    parser.add_argument(
        "--no-xprof", dest="xprof", action="store_false", help="do not install or run XProf"
    )
    return parser.parse_args()
