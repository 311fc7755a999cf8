"""Re-ingest of unchanged dumps beside sha256sum of the same files."""

from pathlib import Path

from bench import Bench, measure, seconds
from dumps import read_files
from figures import Figure
from process import in_turn, memhouse, run
from startup import one_line

_LIMIT = 1.5


def reingest(bench: Bench) -> list[Figure]:
    """Time the re-ingest of all runs, and of the large module."""
    dumps = bench.dumps
    return [
        _figure(bench, "all runs", dumps.warehouse, dumps.runs),
        _figure(bench, "the large module", dumps.large_warehouse, [dumps.large]),
    ]


def _figure(bench: Bench, name: str, warehouse: Path, runs: list[Path]) -> Figure:
    files = read_files(warehouse, runs)
    again, hashed, started = in_turn(
        bench.rounds,
        lambda: memhouse("ingest", "--db", warehouse, *runs),
        lambda: run("sha256sum", *files),
        lambda: one_line(bench),
    )
    return Figure(
        f"re-ingest of {name}, less start-up / sha256sum",
        [
            (a.seconds - c.seconds) / b.seconds
            for a, b, c in zip(again, hashed, started, strict=True)
        ],
        limit=_LIMIT,
        parts=f"({seconds(again):.2f} - {seconds(started):.2f}) s / {seconds(hashed):.2f} s, "
        f"{len(files)} files",
    )


if __name__ == "__main__":
    measure([reingest])
