"""The warehouse's size beside the size of the ingested text under zstd -3."""

from pathlib import Path

import zstandard
from bench import Bench, measure
from dumps import read_files
from figures import Figure

_LARGE_LIMIT = 1.35
_ALL_LIMIT = 1.45


def size(bench: Bench) -> list[Figure]:
    """Measure the warehouse of the large module, and the warehouse of all modules."""
    dumps = bench.dumps
    large, everything = dumps.large_warehouse, [*dumps.runs, dumps.large]
    return [
        *_figures("the large module", large, read_files(large, [dumps.large]), _LARGE_LIMIT),
        *_figures(
            "everything", dumps.warehouse, read_files(dumps.warehouse, everything), _ALL_LIMIT
        ),
    ]


def _figures(name: str, warehouse: Path, files: list[Path], limit: float) -> list[Figure]:
    # A text that many runs share counts once, on both sides of the comparison.
    texts = list(dict.fromkeys(file.read_bytes() for file in files))
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    together = sum(len(stream.compress(text)) for text in texts) + len(stream.flush())
    alone = sum(len(zstandard.ZstdCompressor(level=3).compress(text)) for text in texts)
    return [
        _figure(f"warehouse of {name} / zstd -3 of each text", warehouse, alone, limit),
        _figure(f"warehouse of {name} / zstd -3 of all texts as one", warehouse, together, limit),
    ]


def _figure(what: str, warehouse: Path, text_bytes: int, limit: float) -> Figure:
    stored = warehouse.stat().st_size
    return Figure(
        what,
        [stored / text_bytes],
        limit=limit,
        parts=f"{stored / 1e6:.2f} MB / {text_bytes / 1e6:.2f} MB",
    )


if __name__ == "__main__":
    measure([size])
