"""A night of small programs: what a further one takes, and what eight hosts take beside one."""

import shutil
from functools import partial
from pathlib import Path
from statistics import median

from bench import Bench, measure
from dumps import Module, lay_copies, link
from figures import Figure
from process import Finished, in_turn
from throughput import ingest

_HOSTS = 8
_HOSTS_LIMIT = 1.3
# The sizes of programs, in instructions, with what a further one may take.
_FURTHER = ((4, None), (42, 4.0), (120, None), (913, 15.0))
_SMALL, _SMALL_END = 40, 5000
# The shares of a night by instructions, and the programs of the night that is foretold.
_NIGHT = ((4, 0.6), (120, 0.3), (913, 0.1))
_FORETOLD = 10_000
_FORETOLD_MINUTES = 12.0


def hosts(bench: Bench) -> list[Figure]:
    """Time further programs, and the night of a thousand programs on one host and on eight."""
    count = bench.options.programs
    one = _night(bench, count)
    all_hosts = bench.new_path("hosts")
    for host in range(_HOSTS):
        shutil.copytree(one, all_hosts / f"host{host}")
    of_jobs = {jobs: _of_both(bench, one, all_hosts, jobs) for jobs in (1, 2)}
    all_with_two = [done.seconds for done in of_jobs[2][0]]
    return [
        *(
            _further(bench, [_nearest(bench, size)], f"of {size} instructions", limit)
            for size, limit in _FURTHER
        ),
        _further(bench, _different(bench), f"of {_SMALL} to {_SMALL_END:,}, all different", None),
        *(_ratio(jobs, count, *both) for jobs, both in of_jobs.items()),
        Figure(
            f"{_FORETOLD:,} programs on {_HOSTS} hosts, --jobs 2, from {count:,} programs",
            [seconds / 60 * _FORETOLD / count for seconds in all_with_two],
            "min",
            _FORETOLD_MINUTES,
            parts=f"{median(all_with_two):.1f} s",
        ),
    ]


def _further(bench: Bench, modules: list[Module], name: str, limit: float | None) -> Figure:
    """What a further program takes: the CPU of many copies less that of half of them."""
    many = max(2, bench.options.programs // (5 * len(modules)))
    folders = [lay_copies(bench.new_path("further"), modules, n) for n in (many // 2, many)]
    half, whole = in_turn(bench.few_rounds, *(partial(ingest, bench, f, 1) for f in folders))
    more = (many - many // 2) * len(modules)
    instructions = median(module.instructions for module in modules)
    return Figure(
        f"CPU of a further program {name}",
        [1000 * (b.cpu_seconds - a.cpu_seconds) / more for a, b in zip(half, whole, strict=True)],
        "ms",
        limit,
        parts=f"{more} programs more, of {instructions:,.0f} instructions in the middle",
    )


def _nearest(bench: Bench, instructions: int) -> Module:
    return min(bench.dumps.modules, key=lambda module: abs(module.instructions - instructions))


def _different(bench: Bench) -> list[Module]:
    return [module for module in bench.dumps.modules if _SMALL <= module.instructions <= _SMALL_END]


def _night(bench: Bench, count: int) -> Path:
    """One host's dumps of so many programs, all of different names."""
    folder = bench.new_path("night")
    folder.mkdir()
    number = 0
    for size, share in _NIGHT:
        module = _nearest(bench, size)
        for _ in range(round(share * count)):
            link(module, folder, f"{module.module_name}_{number}")
            number += 1
    return folder


def _of_both(
    bench: Bench, one: Path, all_hosts: Path, jobs: int
) -> tuple[list[Finished], list[Finished]]:
    of_all, of_one = in_turn(
        bench.few_rounds, *(partial(ingest, bench, folder, jobs) for folder in (all_hosts, one))
    )
    return of_all, of_one


def _ratio(jobs: int, count: int, of_all: list[Finished], of_one: list[Finished]) -> Figure:
    a, b = ([done.cpu_seconds for done in runs] for runs in (of_all, of_one))
    return Figure(
        f"CPU of {_HOSTS} hosts / 1 host, {count:,} programs, --jobs {jobs}",
        [x / y for x, y in zip(a, b, strict=True)],
        limit=_HOSTS_LIMIT,
        parts=f"{median(a):.2f} s / {median(b):.2f} s",
    )


if __name__ == "__main__":
    measure([hosts])
