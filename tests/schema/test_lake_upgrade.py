"""A lake of an older memhouse is upgraded by the first command that writes, and not before."""

import subprocess
from pathlib import Path

import pytest
from pyarrow import parquet

import memhouse
from memhouse.lake import init
from memhouse.schema import versions
from memhouse.schema.errors import UnpreparedError, WarehouseError
from memhouse.schema.lake import upkeep as upgrading
from memhouse.schema.lake.commits import Actions, commit
from memhouse.schema.lake.data_files import (
    LAYOUT_PROPERTY,
    VERSION_PROPERTY,
    DataFile,
    read_files,
    write_file,
)
from memhouse.schema.lake.snapshot import Lake

DATA = Path(__file__).parents[1] / "data"
SAMPLES = [DATA / "dumps" / name for name in ("cpu/jax-0.9.0", "tpu/flash-v5e")]
# What tells when and by whom a lake was filled, and not with what.
OF_INGEST = ("entered_at", "ingested_at", "compiled_at", "tool_version", "source", "by_whom")


@pytest.fixture
def older(tmp_path):
    """A lake that a memhouse of lake version 1 filled with the samples."""
    packed = DATA / "warehouses/lake-v1.tar.zst"
    subprocess.run(["tar", "--zstd", "-xf", packed, "-C", tmp_path], check=True)
    return tmp_path / "lake-v1"


def content(lake):
    """The rows of all tables but the journal, without what is of the ingest."""
    with memhouse.open(lake, read_only=True) as warehouse:
        return {
            name: [
                {key: value for key, value in row.items() if key not in OF_INGEST}
                for row in warehouse.sql(f'FROM "{name}" ORDER BY ALL').table.to_pylist()
            ]
            for name in warehouse.tables().table["table"].to_pylist()
            if name != "journal"
        }


def test_for_reading_it_is_refused_with_a_line_and_stays(older):
    before = {path: path.read_bytes() for path in older.rglob("*") if path.is_file()}
    with pytest.raises(UnpreparedError, match="memhouse ingest"):
        memhouse.open(older, read_only=True)
    assert {path: path.read_bytes() for path in older.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_it_becomes_what_this_memhouse_makes_of_the_dumps(older, tmp_path, monkeypatch):
    """Also if the upgrade stops on its way: the next one goes on."""
    commit = upgrading.commit

    def before_rows(lake, plan):
        raise WarehouseError("no power")

    def after_rows(lake, plan):
        commit(lake, plan)
        raise WarehouseError("no power")

    for stop in (before_rows, after_rows):
        with monkeypatch.context() as patched:
            patched.setattr(upgrading, "commit", stop)
            with pytest.raises(WarehouseError, match="no power"):
                memhouse.open(older)
        with pytest.raises(UnpreparedError):
            memhouse.open(older, read_only=True)
    fresh = init(tmp_path / "fresh")
    for lake in (older, fresh):
        with memhouse.open(lake) as warehouse:
            if lake == older:
                actions = warehouse.log().table.select(["entry", "action", "run"]).to_pylist()
                assert [tuple(row.values()) for row in actions] == [
                    (3, "upgrade", None),
                    (2, "ingest", "flash-v5e"),
                    (1, "ingest", "jax-0.9.0"),
                ]
            for sample in SAMPLES:
                warehouse.ingest(sample, labels={"branch": "main"})
    # Where a run stands was worked out from a file's time, and stays; all else is read again.
    found, expected = content(older), content(fresh)
    for rows in (found["runs"], expected["runs"]):
        for row in rows:
            del row["run_at"], row["claimed_at"]
    assert found == expected


def test_a_lake_of_version_7_becomes_what_it_would_be_today(tmp_path):
    """Its ids stay, as only those of lakes before version 5 are longer."""
    lake = Path(init(tmp_path / "lake"))
    with memhouse.open(lake) as warehouse:
        for sample in SAMPLES:
            warehouse.ingest(sample)
        files = warehouse.sql("FROM dump_files ORDER BY dump_id, path").table
    before = content(lake)
    assert {row["kind"] for row in files.to_pylist()} >= {"hlo", "buffer-assignment"}
    opened = Lake(str(lake))
    # The files of each dump, and no sets of them.
    path = "relation=dump_files/before.parquet"
    (lake / path).parent.mkdir()
    parquet.write_table(files, lake / path)
    of_before = DataFile("dump_files", path, (lake / path).stat().st_size, len(files))
    rows = read_files(str(lake), opened.snapshot.of("dumps"), "dumps").drop_columns(["files_id"])
    dumps = write_file(str(lake), "dumps", rows)
    removed = [file for name in ("dumps", "file_sets") for file in opened.snapshot.of(name)]
    commit(opened, lambda _: Actions([of_before, dumps], removed))
    opened.table.alter.set_table_properties(
        {VERSION_PROPERTY: "7", LAYOUT_PROPERTY: versions.LAYOUTS[7]}, raise_if_not_exists=False
    )
    with pytest.raises(UnpreparedError):
        memhouse.open(lake, read_only=True)
    with memhouse.open(lake) as warehouse:
        assert warehouse.sql("FROM dump_files ORDER BY dump_id, path").table == files
    assert content(lake) == before


def test_one_between_two_releases_is_refused(tmp_path, monkeypatch):
    lake = init(tmp_path / "lake")
    monkeypatch.setitem(versions.LAYOUTS, versions.SCHEMA_VERSION, "another")
    monkeypatch.setattr("memhouse.schema.lake.snapshot.layout", lambda: "another")
    with pytest.raises(WarehouseError, match="lake"):
        memhouse.open(lake)
