"""Re-ingest of unchanged dumps beside sha256sum of the same files."""

from pathlib import Path

from bench import Bench, Row, measure, ratio_row, seconds
from dumps import read_files
from process import in_turn, memhouse, run
from startup import one_line

_LIMIT = 1.5


def reingest(bench: Bench) -> list[Row]:
    """Time the re-ingest of all runs, and of the large module."""
    dumps = bench.dumps
    return [
        _row(bench, "all runs", dumps.warehouse, dumps.runs),
        _row(bench, "the large module", dumps.large_warehouse, [dumps.large]),
    ]


def _row(bench: Bench, name: str, warehouse: Path, runs: list[Path]) -> Row:
    files = read_files(warehouse, runs)
    again, hashed, started = in_turn(
        bench.rounds,
        lambda: memhouse("ingest", "--db", warehouse, *runs),
        lambda: run("sha256sum", *files),
        lambda: one_line(bench),
    )
    ratios = [
        (a.seconds - c.seconds) / b.seconds for a, b, c in zip(again, hashed, started, strict=True)
    ]
    return ratio_row(
        f"re-ingest of {name}, less start-up / sha256sum",
        ratios,
        _LIMIT,
        f"({seconds(again):.2f} - {seconds(started):.2f}) s / {seconds(hashed):.2f} s, "
        f"{len(files)} files",
    )


if __name__ == "__main__":
    measure([reingest])
