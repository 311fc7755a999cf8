"""A warehouse of eight hosts and two branches, made of the ten nights."""

import shutil
import tempfile
from pathlib import Path

from .command import run_memhouse
from .history import nights
from .shared import shared

HOSTS = [f"host{number}" for number in range(8)]
# The run, its branch, the night that host3 has, the night that all other hosts have, and the
# night of llama-v5e.
RUNS = [
    ("main-1", "main", "2026-10-04", "2026-10-04", "2026-10-01"),
    ("main-2", "main", "2026-10-03", "2026-10-04", "2026-10-01"),
    ("pr-7", "pull/7", "2026-10-07", "2026-10-07", "2026-10-10"),
    ("main-3", "main", "2026-10-03", "2026-10-04", "2026-10-03"),
]


def hosts() -> Path:
    """The warehouse. Only read it: it is shared.

    Eight hosts dump decode-v5e; host3 differs from the second run of main on. A pull request's
    run lies before main's last.
    """
    return shared("hosts.duckdb", _fill)


def _fill(db: Path) -> None:
    source = nights()
    with tempfile.TemporaryDirectory() as folder:
        for day, (run, branch, odd, even, llama) in enumerate(RUNS, 1):
            dumps = Path(folder) / run
            for host in HOSTS:
                night = odd if host == "host3" else even
                shutil.copytree(source / night / "decode-v5e", dumps / host)
            shutil.copytree(source / llama / "llama-v5e", dumps / "llama-v5e")
            done = run_memhouse(
                *("ingest", dumps, "--db", db, "--at", f"2026-11-0{day}"),
                *("--label", f"branch={branch}"),
            )
            assert done.returncode == 0, done.stderr
