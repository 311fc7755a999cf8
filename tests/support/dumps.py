"""The sample dumps: real ones, small enough to keep."""

import gzip
from pathlib import Path

from memhouse.ingest.formats import BY_NAME, sections
from memhouse.ingest.readers.lines import Lines, split_lines

DATA = Path(__file__).parents[1] / "data"
DUMPS = DATA / "dumps"
RUNS = sorted(path for path in DUMPS.iterdir() if path.is_dir())


def one_file(pattern: str) -> Path:
    """The only sample file that the pattern finds."""
    (found,) = DUMPS.glob(pattern)
    return found


def content(pattern: str) -> bytes:
    """That file's bytes, uncompressed."""
    path = one_file(pattern)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def lines(pattern: str) -> Lines:
    """That file's lines."""
    return split_lines(content(pattern))


def section(pattern: str, part: str) -> Lines:
    """A part of that file: several share one in older dumps."""
    return sections(lines(pattern))[BY_NAME[part]]


def copy_dump(pattern: str, folder: Path) -> Path:
    """Copy the files that the pattern finds to the folder, uncompressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in DUMPS.glob(pattern):
        text = path.read_bytes()
        name = path.name
        if path.suffix == ".gz":
            text, name = gzip.decompress(text), path.stem
        (folder / name).write_bytes(text)
    return folder
