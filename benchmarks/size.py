"""The warehouse's size beside the size of the ingested text under zstd -3."""

from pathlib import Path

import zstandard
from bench import Bench, Row, measure, verdict
from dumps import read_files

_LIMIT = 1.0


def size(bench: Bench) -> list[Row]:
    """Measure the warehouse of the large module, and the warehouse of all modules."""
    dumps = bench.dumps
    large, everything = dumps.large_warehouse, [*dumps.runs, dumps.large]
    return [
        *_rows("the large module", large, read_files(large, [dumps.large])),
        *_rows("everything", dumps.warehouse, read_files(dumps.warehouse, everything)),
    ]


def _rows(name: str, warehouse: Path, files: list[Path]) -> list[Row]:
    # A text that many runs share counts once, on both sides of the comparison.
    texts = list(dict.fromkeys(file.read_bytes() for file in files))
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    together = sum(len(stream.compress(text)) for text in texts) + len(stream.flush())
    alone = sum(len(zstandard.ZstdCompressor(level=3).compress(text)) for text in texts)
    return [
        _row(f"warehouse of {name} / zstd -3 of each text", warehouse, alone),
        _row(f"warehouse of {name} / zstd -3 of all texts as one", warehouse, together),
    ]


def _row(what: str, warehouse: Path, text_bytes: int) -> Row:
    stored = warehouse.stat().st_size
    ratio = stored / text_bytes
    return Row(
        what,
        f"{ratio:.2f} ({stored / 1e6:.2f} MB / {text_bytes / 1e6:.2f} MB)",
        verdict(ratio, _LIMIT, f"{_LIMIT:g}"),
    )


if __name__ == "__main__":
    measure([size])
