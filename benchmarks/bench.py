"""Runs all benchmarks on the dumps in a folder and prints one table: python bench.py DUMPS."""

import argparse
import itertools
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import zstandard
from dumps import Dumps, ingest_history, lay_copies, lay_out, link, read_texts
from measurement import Measurement, Results, print_table, write_results
from process import Finished, ProcessError, in_turn, memhouse, run

import memhouse as library

_HERE = Path(__file__).parent
_SAMPLES = _HERE.parent / "tests" / "data" / "dumps"
_PACKAGES = ("duckdb", "pyarrow", "numpy")
_HOSTS = 8
# Instructions of a program: the milliseconds of CPU that a further one may take, and the share of
# a night's programs that are of this size.
_PROGRAM_SIZES: dict[int, tuple[float | None, float]] = {
    4: (None, 0.6),
    42: (4.0, 0.0),
    120: (None, 0.3),
    913: (15.0, 0.1),
}
_HISTORY_MS = {"trends": 500.0, "regressions": 100.0, "runs_summary": 100.0, "peaks": None}


@dataclass
class Bench:
    """What every benchmark gets: the dumps, the options and a temporary folder."""

    folder: Path
    dumps: Dumps
    options: argparse.Namespace
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_path(self, name: str) -> Path:
        """An unused path in the temporary folder."""
        return self.folder / f"{next(self._numbers)}-{name}"

    def in_turn(self, *works: Callable[[], Finished]) -> list[list[Finished]]:
        """Run commands in turn, as many rounds as the options say."""
        return in_turn(self.options.rounds, *works)

    def ingest(self, folder: Path, *, jobs: int = 1, sample: bool = False) -> Finished:
        """Ingest a folder into a warehouse of its own, which is deleted afterwards."""
        database = self.new_path("new.duckdb")
        done = memhouse("ingest", "--db", database, "--jobs", str(jobs), folder, sample=sample)
        database.unlink()
        return done

    def change(self, warehouse: Path, *arguments: str | Path) -> Finished:
        """Run a command that changes a copy of the warehouse."""
        copy = self.new_path("copy.duckdb")
        shutil.copyfile(warehouse, copy)
        done = memhouse(*arguments, "--db", copy)
        copy.unlink()
        return done


def seconds(name: str, runs: list[Finished], limit: float | None = None) -> Measurement:
    """The wall time of a command."""
    cpu = median(run.cpu_seconds for run in runs)
    values = [run.seconds for run in runs]
    return Measurement(name, values, "s", limit, f"CPU {cpu:.2f} s")


def cpu_seconds(name: str, runs: list[Finished], limit: float | None = None) -> Measurement:
    """The CPU time of a command and its children."""
    return Measurement(name, [run.cpu_seconds for run in runs], "s", limit)


def ratio(
    name: str, over: list[float], under: list[float], unit: str, limit: float | None = None
) -> Measurement:
    """The ratio in each round, so that a slow minute slows both sides."""
    values = [a / b for a, b in zip(over, under, strict=True)]
    scale = 1e6 if unit == "MB" else 1
    detail = f"{median(over) / scale:.2f} {unit} / {median(under) / scale:.2f} {unit}"
    return Measurement(name, values, limit=limit, detail=detail)


def start(bench: Bench) -> list[Measurement]:
    """The start-up of the command, and of the library it cannot do without."""
    helped, asked, imported = bench.in_turn(
        lambda: memhouse("--help"),
        lambda: memhouse("sql", "--db", bench.dumps.warehouse, "SELECT 1"),
        lambda: run(sys.executable, "-c", "import duckdb, pyarrow"),
    )
    return [
        seconds("`memhouse --help`", helped, 0.35),
        seconds("`memhouse sql` of one line", asked, 0.6),
        seconds("`import duckdb, pyarrow`", imported),
    ]


def large(bench: Bench) -> list[Measurement]:
    """Ingest of the large module into a new warehouse."""
    (runs,) = bench.in_turn(lambda: bench.ingest(bench.dumps.large))
    peaks = [float(run.peak_bytes) for run in runs]
    return [
        seconds("ingest of the large module", runs),
        cpu_seconds("ingest of the large module, CPU", runs, 1.4),
        Measurement("ingest of the large module, peak memory", peaks, "bytes", 420e6),
    ]


def night(bench: Bench) -> list[Measurement]:
    """Ingest of a night of small programs, and the CPU time of a further one."""
    folder = _lay_night(bench, bench.options.programs)
    known = bench.new_path("known.duckdb")
    memhouse("ingest", "--db", known, folder)
    one, two, again = bench.in_turn(
        lambda: bench.ingest(folder),
        lambda: bench.ingest(folder, jobs=2),
        lambda: bench.change(known, "ingest", folder, "--run", "again"),
    )
    name = f"ingest of {bench.options.programs:,} programs"
    return [
        seconds(f"{name}, --jobs 1", one),
        seconds(f"{name}, --jobs 2", two),
        seconds(f"{name} that are known", again),
        *(_further_program(bench, size, limit) for size, (limit, _) in _PROGRAM_SIZES.items()),
    ]


def _further_program(bench: Bench, size: int, limit: float | None) -> Measurement:
    """The CPU time of many copies less that of half of them, per copy."""
    module = bench.dumps.nearest(size)
    few = max(1, bench.options.programs // 10)
    folders = [lay_copies(bench.new_path("copies"), module, n) for n in (few, 2 * few)]
    half, full = bench.in_turn(*(partial(bench.ingest, folder) for folder in folders))
    return Measurement(
        f"CPU of a further program of {size} instructions",
        [1000 * (b.cpu_seconds - a.cpu_seconds) / few for a, b in zip(half, full, strict=True)],
        "ms",
        limit,
        f"{few} more copies of a program of {module.instructions:,}",
    )


def _lay_night(bench: Bench, count: int) -> Path:
    """One host's dumps of this many programs, all of different names."""
    folder = bench.new_path("night")
    number = 0
    for size, (_, share) in _PROGRAM_SIZES.items():
        module = bench.dumps.nearest(size)
        for _ in range(round(share * count)):
            link(module, folder, f"{module.name}_{number}")
            number += 1
    return folder


def hosts(bench: Bench) -> list[Measurement]:
    """Ingest of a night that eight hosts dumped, next to that of one host."""
    one = _lay_night(bench, bench.options.programs)
    every = bench.new_path("hosts")
    for host in range(_HOSTS):
        shutil.copytree(one, every / f"host{host}")
    of_all, of_one = bench.in_turn(
        lambda: bench.ingest(every, jobs=2), lambda: bench.ingest(one, jobs=2)
    )
    return [
        ratio(
            f"CPU of {_HOSTS} hosts / 1 host, {bench.options.programs:,} programs, --jobs 2",
            [run.cpu_seconds for run in of_all],
            [run.cpu_seconds for run in of_one],
            "s",
            1.3,
        )
    ]


def history(bench: Bench) -> list[Measurement]:
    """A year of runs: its views, commands that read all of it, and one more run."""
    count = bench.options.runs
    year, one = (ingest_history(bench.dumps, _new_folder(bench), runs) for runs in (count, 1))
    more = bench.dumps.runs[-1]
    late = ("ingest", more, "--run", "late", "--at", "2025-01-01T12:00")
    page = bench.new_path("history.html")
    checked, reported, beside_year, beside_one, second, pruned = bench.in_turn(
        # The status 1 is a check that fails, 3 one that nothing is compared with.
        lambda: memhouse("check", "--db", year, ok=(0, 1, 3)),
        lambda: memhouse("report", "--history", "--db", year, "-o", page),
        lambda: bench.change(year, "ingest", more, "--run", "one-more"),
        lambda: bench.change(one, "ingest", more, "--run", "one-more"),
        lambda: bench.change(year, *late),
        lambda: bench.change(year, "prune", "run-0000"),
    )
    a_run, a_first_run, a_late_run = (
        [run.cpu_seconds for run in runs] for runs in (beside_year, beside_one, second)
    )
    return [
        cpu_seconds(f"CPU of `check` of {count} runs", checked, 0.7),
        cpu_seconds(f"CPU of `report --history` of {count} runs", reported),
        cpu_seconds(f"CPU of a prune of the oldest of {count} runs", pruned),
        ratio(f"CPU of one more run, {count} runs / 1 run", a_run, a_first_run, "s", 1.05),
        ratio(f"CPU of a late run / the newest, {count} runs", a_late_run, a_run, "s", 1.1),
        *_views(bench, year),
    ]


def _new_folder(bench: Bench) -> Path:
    folder = bench.new_path("history")
    folder.mkdir()
    return folder


def _views(bench: Bench, warehouse: Path) -> list[Measurement]:
    """Milliseconds of views of the whole history, within a process."""

    def ask(view: str) -> float:
        begin = perf_counter()
        opened.sql(f"FROM {view}").arrow()
        return 1000 * (perf_counter() - begin)

    with library.open(warehouse, read_only=True) as opened:
        answers = in_turn(bench.options.rounds, *(partial(ask, view) for view in _HISTORY_MS))
    name = f"of {bench.options.runs} runs"
    return [
        Measurement(f"`{view}` {name}", values, "ms", limit)
        for (view, limit), values in zip(_HISTORY_MS.items(), answers, strict=True)
    ]


def size(bench: Bench) -> list[Measurement]:
    """The size of a warehouse next to that of its texts under `zstd -3`."""
    dumps = bench.dumps
    measured = (
        ("the large module", dumps.large_warehouse, [dumps.large], 1.35),
        ("everything", dumps.warehouse, [*dumps.runs, dumps.large], 1.45),
    )
    found = []
    for name, warehouse, folders, limit in measured:
        compressor = zstandard.ZstdCompressor(level=3)
        compressed = sum(len(compressor.compress(t)) for t in read_texts(warehouse, folders))
        stored = [float(warehouse.stat().st_size)]
        found.append(
            ratio(f"warehouse of {name} / zstd -3", stored, [float(compressed)], "MB", limit)
        )
    return found


def memory(bench: Bench) -> list[Measurement]:
    """Memory of all processes of an ingest with two jobs, of few and of many large modules."""
    few, many = bench.options.copies, 5 * bench.options.copies
    folders = [lay_copies(bench.new_path("copies"), bench.dumps.modules[0], n) for n in (few, many)]
    fewer, more = in_turn(
        bench.options.rounds,
        *(partial(bench.ingest, folder, jobs=2, sample=True) for folder in folders),
        warm_up=False,
    )
    few_bytes, many_bytes = ([float(run.total_bytes) for run in runs] for runs in (fewer, more))
    return [
        Measurement(f"memory of {many} large modules, --jobs 2", many_bytes, "bytes", 1e9),
        ratio(
            f"memory of {many} / {few} large modules, --jobs 2", many_bytes, few_bytes, "MB", 1.1
        ),
    ]


BENCHMARKS = (start, large, night, hosts, history, size, memory)


def environment() -> dict[str, str]:
    """The commit, versions, cores and load: what makes two results comparable."""
    commit = _git("rev-parse", "--short=10", "HEAD") or "unknown"
    return {
        "commit": f"{commit} with changes" if _git("status", "--porcelain") else commit,
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "cores": str(len(os.sched_getaffinity(0))),
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", _HERE, *words], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def main() -> None:
    """Run the benchmarks that the command line names, and print one table."""
    options = _options()
    around = environment()
    results: list[Measurement] = []
    try:
        with TemporaryDirectory(prefix="memhouse-bench-") as folder:
            print("laying out the dumps …", file=sys.stderr)
            bench = Bench(Path(folder), lay_out(options.dumps, Path(folder, "dumps")), options)
            for benchmark in BENCHMARKS:
                if not options.only or benchmark.__name__ in options.only:
                    print(f"{benchmark.__name__} …", file=sys.stderr)
                    results += benchmark(bench)
                    # Written after each benchmark, because the next one may fail.
                    if options.json:
                        write_results(options.json, Results(around, results))
    except ProcessError as error:
        sys.exit(f"a measured command failed: {error}")
    print_table([measurement.row() for measurement in results])
    print("\n" + ", ".join(f"{name} {value}" for name, value in around.items()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "dumps", metavar="DUMPS", nargs="?", type=Path, default=_SAMPLES, help="see README.md"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results there")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        choices=[benchmark.__name__ for benchmark in BENCHMARKS],
        help="run this benchmark alone; repeatable",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds after the warm-up")
    parser.add_argument("--programs", type=int, default=300, help="programs of a night")
    parser.add_argument("--runs", type=int, default=365, help="runs of the history")
    parser.add_argument("--copies", type=int, default=8, help="large modules for memory, at least")
    return parser.parse_args()


if __name__ == "__main__":
    main()
