"""A night of many hosts: the same programs on eight hosts beside one host alone."""

import shutil
from functools import partial
from pathlib import Path
from statistics import median

from bench import Bench, measure
from figures import Figure
from process import in_turn
from throughput import ingest

_HOSTS = 8
_LIMIT = 1.3


def hosts(bench: Bench) -> list[Figure]:
    """Compare the CPU of a night that eight hosts dumped with that of one host's night."""
    night = bench.dumps.runs[-1]
    one, all_hosts = (_laid_out(bench, night, count) for count in (1, _HOSTS))
    return [_figure(bench, one, all_hosts, jobs) for jobs in (1, 2)]


def _laid_out(bench: Bench, night: Path, count: int) -> Path:
    """A run in which each host has dumped what the night has."""
    run = bench.new_path("hosts")
    for host in range(count):
        shutil.copytree(night, run / f"host{host}")
    return run


def _figure(bench: Bench, one: Path, all_hosts: Path, jobs: int) -> Figure:
    works = (partial(ingest, bench, folder, jobs) for folder in (all_hosts, one))
    of_all, of_one = (
        [done.cpu_seconds for done in found] for found in in_turn(bench.rounds, *works)
    )
    return Figure(
        f"CPU of {_HOSTS} hosts / 1 host, same programs, --jobs {jobs}",
        [a / b for a, b in zip(of_all, of_one, strict=True)],
        limit=_LIMIT,
        parts=f"{median(of_all):.2f} s / {median(of_one):.2f} s",
    )


if __name__ == "__main__":
    measure([hosts])
