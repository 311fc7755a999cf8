"""What keeps a lake small and quick: encodings, few requests, history in parts."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from memhouse.schema import arrow
from memhouse.schema.lake import remote_files, storage
from memhouse.schema.lake.data_files import DataFile, read_files, write_file
from memhouse.schema.lake.lake_tables import connect, select
from memhouse.schema.lake.remote_files import RemoteFiles
from memhouse.schema.lake.snapshot import Snapshot
from memhouse.schema.stores.base import Batch
from memhouse.schema.stores.delta import DeltaStore


def encodings(file, column):
    metadata = parquet.ParquetFile(file).metadata
    places = {metadata.schema.column(n).name: n for n in range(metadata.num_columns)}
    return set(metadata.row_group(0).column(places[column]).encodings)


def operands(count):
    columns = {
        "module_id": [7] * count,
        "instruction_id": list(range(count)),
        "operand_number": [0] * count,
        "operand_instruction_id": list(range(count)),
    }
    return pa.table(columns, schema=arrow.schema("operands"))


def test_ids_are_stored_as_differences_and_the_rest_in_dictionaries(tmp_path):
    file = write_file(str(tmp_path), "operands", operands(100_000))
    stored = tmp_path / file.path
    assert "DELTA_BINARY_PACKED" in encodings(stored, "instruction_id")
    assert "RLE_DICTIONARY" in encodings(stored, "operand_number")
    # As plain numbers the ids alone would take 800 KB.
    assert file.size_bytes < 20_000
    assert read_files(str(tmp_path), [file], "operands").equals(operands(100_000))


def test_names_are_stored_plainly(tmp_path):
    names = {"instruction": [f"fusion.{n}" for n in range(1000)]}
    file = write_file(str(tmp_path), "instructions", pa.table(names))
    assert not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & encodings(
        tmp_path / file.path, "instruction"
    )


class Store:
    """An object store that counts what is asked of it."""

    def __init__(self, folder):
        self.folder, self.asked = folder, []

    def cat_file(self, path, start, end):
        self.asked.append((path, start, end))
        return Path("/", path).read_bytes()[start:end]


@pytest.fixture
def store(tmp_path, monkeypatch):
    found = Store(tmp_path)
    monkeypatch.setattr(storage, "filesystem", lambda _: found)
    return found


@pytest.fixture
def remote(tmp_path, store):
    """A file of a lake of a few rows, its URL, and the store that it is in."""
    file = write_file(str(tmp_path), "operands", operands(1000))
    path = f"counted://{str(tmp_path)[1:]}/{file.path}"
    files = RemoteFiles("counted://")
    files.know({path: file.size_bytes})
    return files, path, store


def test_a_small_file_takes_one_request_however_often_duckdb_reads_it(remote):
    files, path, store = remote
    connection = connect("here", files=True)
    connection.register_filesystem(files)
    query = f"SELECT SUM(instruction_id) FROM read_parquet(['{path}'])"
    assert [connection.sql(query).fetchall() for _ in range(3)] == [[(499_500,)]] * 3
    assert len(store.asked) == 1


def test_of_a_large_file_the_end_is_read_once_and_the_rest_where_it_is_wanted(tmp_path, store):
    content = bytes(range(256)) * (8 << 10)
    (tmp_path / "large").write_bytes(content)
    files = RemoteFiles("counted://")
    path = f"counted://{str(tmp_path)[1:]}/large"
    files.know({path: len(content)})
    for _ in range(2):
        with_end = files.open(path)
        with_end.seek(-8, 2)
        assert with_end.read() == content[-8:]
    assert len(store.asked) == 1
    with_end.seek(1000)
    assert (with_end.read(10), with_end.tell()) == (content[1000:1010], 1010)
    assert store.asked[1][1:] == (1000, 1010)


def test_threads_that_read_many_files_do_not_disturb_each_other(tmp_path, store, monkeypatch):
    """DuckDB reads in several threads, and what was read is forgotten meanwhile."""
    monkeypatch.setattr(remote_files, "_MOST_KEPT_BYTES", 300)
    files = RemoteFiles("counted://")
    paths = []
    for number in range(200):
        (tmp_path / str(number)).write_bytes(bytes([number]) * 8)
        paths.append(f"{str(tmp_path)[1:]}/{number}")
    files.know(dict.fromkeys(paths, 8))

    def read(path):
        return [files.open(path).read() for _ in range(5)]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(read, paths * 3))
    assert found == [[bytes([number]) * 8] * 5 for number in range(200)] * 3


def test_a_file_that_is_not_known_is_not_there(remote):
    files, path, store = remote
    assert files.exists(path)
    assert not files.exists(path + "x")
    with pytest.raises(FileNotFoundError):
        files.open(path + "x")
    assert not store.asked


def test_files_of_a_store_are_read_whole(tmp_path):
    files = [write_file(str(tmp_path), "operands", operands(count)) for count in (10, 20)]
    for file in files:
        content = (tmp_path / file.path).read_bytes()
        fsspec.filesystem("memory").pipe_file(f"/lake/{file.path}", content)
    for some in ([], files[:1], files):
        found = read_files("memory://lake", some, "operands")
        assert len(found) == sum(file.rows for file in some)
        assert found.schema == arrow.schema("operands")


def nights(*numbers):
    """Runs with one dump each, whose module could not be read."""
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in numbers]
    runs = [
        {
            "run_id": f"{time:%Y-%m-%d}",
            "run_at": time,
            "run_seq": number,
            "ingested_at": time,
            "source": "night",
            "tool_version": "test",
        }
        for number, time in zip(numbers, times, strict=True)
    ]
    dumps = [
        {
            "dump_id": run["run_seq"],
            "run_id": run["run_id"],
            "workload": "train",
            "module_name": "jit_step",
            "occurrence": 1,
            "platform": "tpu",
            "status": "failed",
            "oom": False,
        }
        for run in runs
    ]
    return Batch({"runs": arrow.rows("runs", runs), "dumps": arrow.rows("dumps", dumps)})


def history_files(store):
    return {file.path for file in store.lake.snapshot.of("history")}


@pytest.fixture
def growing(tmp_path):
    """A lake of 40 nights, in one store that stays open."""
    with closing(DeltaStore(str(tmp_path / "lake"), create=True)) as store:
        store.write(nights(*range(1, 41)))
        store.tidy()
        yield store


def test_a_further_night_writes_the_last_part_of_the_history_anew(growing):
    before = history_files(growing)
    growing.write(nights(41))
    growing.tidy()
    after = history_files(growing)
    assert (len(before), len(after), len(before & after)) == (2, 2, 1)


def test_a_store_that_stays_open_shows_what_another_reads_afresh(growing):
    growing.write(nights(41))
    growing.delete_runs(["2026-01-10"])
    for told in ("before", "after"):
        with closing(DeltaStore(growing.name)) as other:
            for table in ("runs", "dumps", "lineages", "history", "gone"):
                query = f"SELECT * FROM {table} ORDER BY ALL"
                assert growing.rows(query).equals(other.rows(query)), (table, told)
        growing.tidy()


def test_another_process_s_commits_are_added_to_what_is_in_memory(growing):
    assert growing.rows("SELECT COUNT(*) AS n FROM dumps")["n"].to_pylist() == [40]
    with closing(DeltaStore(growing.name)) as other:
        other.write(nights(41))
    growing.lake.refresh()
    found = growing.rows("SELECT COUNT(*) AS n FROM history")
    assert found["n"].to_pylist() == [41]


@pytest.mark.scheduled
def test_what_does_not_fit_into_memory_stays_out_of_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(connect(str(tmp_path / "lake"))) as connection:
        connection.execute("SET memory_limit = '24MB'; SET threads = 1")
        large = "CREATE TABLE spilled AS SELECT range, random() AS r FROM range(4000000) ORDER BY r"
        connection.execute(large)
        assert connection.sql("SELECT COUNT(*) > 0 FROM duckdb_temporary_files()").fetchall() == [
            (True,)
        ]
        assert list(tmp_path.iterdir()) == []


def test_joins_are_planned_by_a_file_of_the_usual_size():
    """DuckDB took values to be few, and paired all of a module: `wasted_donations` never ended."""
    files = [DataFile("uses", f"{rows}.parquet", 1, rows, {}, {}) for rows in (1, 200, 5000, 900)]
    query = select("/lake", Snapshot(0, {"uses": tuple(files)}), "uses")
    assert re.findall(r"(\d+)\.parquet", query) == ["900", "1", "200", "5000"]
