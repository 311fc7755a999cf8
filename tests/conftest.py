"""What many tests share: the sample dumps, a warehouse of all of them, the command."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memhouse.cli.warehouse import reading, writing
from memhouse.ingest.lines import Lines, split_lines
from memhouse.ingest.parallel import Readers
from memhouse.ingest.run import Summary, ingest
from memhouse.ingest.sections import split_sections
from memhouse.schema.warehouse import driver

DATA = Path(__file__).parent / "data"
DUMPS = DATA / "dumps"
RUNS = sorted(path for path in DUMPS.iterdir() if path.is_dir())
MEMHOUSE = Path(sys.executable).parent / "memhouse"


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
    return split_sections(lines(pattern))[part]


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


def run_memhouse(
    *args: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the real command; `env` adds to the environment."""
    clean = {key: value for key, value in os.environ.items() if key != "MEMHOUSE_DB"}
    return subprocess.run(
        [MEMHOUSE, *map(str, args)],
        cwd=cwd,
        input=stdin or "",
        env=clean | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
    )


def fill(db: Path, *paths: Path, jobs: int = 1, **options: Any) -> list[Summary]:
    """Ingest the paths into a warehouse; what became of each."""
    with writing(str(db)) as engine, Readers(jobs) as readers:
        return [
            ingest(lambda: engine, path, tool_version="test", readers=readers, **options)
            for path in paths
        ]


def rows(db: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query on a warehouse."""
    with reading(str(db)) as connection:
        return driver(connection).sql(query).fetchall()


def everything(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, sorted."""
    with reading(str(db)) as connection:
        duck = driver(connection)
        names = duck.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        return {
            name: duck.sql(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall() for (name,) in names
        }


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of all sample dumps: the file. Copy it to change it."""
    db = tmp_path_factory.mktemp("warehouse") / "all.duckdb"
    for summary in fill(db, *RUNS):
        assert summary.problems == []
    return db


@pytest.fixture(scope="session")
def warehouse(filled: Path) -> Iterator[Any]:
    """The same, open for reading: DuckDB's connection."""
    with reading(str(filled)) as connection:
        yield driver(connection)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where a warehouse may be made."""
    return tmp_path / "memhouse.duckdb"


@pytest.fixture
def copied(filled: Path, db: Path) -> Path:
    """A copy of the warehouse of all sample dumps."""
    return Path(shutil.copy(filled, db))


@pytest.fixture(scope="session")
def nights(tmp_path_factory):
    """The folder of the ten nights, one in each. Only read it."""
    from .history import nights as unpacked

    return unpacked(tmp_path_factory)


@pytest.fixture(scope="session")
def history(tmp_path_factory):
    """The ten nights' warehouse. Only read it."""
    from .history import history as filled_with_nights

    return filled_with_nights(tmp_path_factory)


@pytest.fixture
def own(history, db):
    """A copy of the ten nights' warehouse, to write to."""
    return shutil.copy(history, db)
