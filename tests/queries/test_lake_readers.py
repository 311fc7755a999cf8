"""Other programs and a lake: what they read is what memhouse reads, and what they may do to it."""

import shutil
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import memhouse
from memhouse import UsageError
from memhouse.schema import arrow
from memhouse.schema.lake.data_files import relations
from memhouse.schema.lake.snapshot import Lake

from ..support.dumps import DUMPS
from ..support.shared import shared

RUNS = ("cpu", "seeds", "gpu")


def ingest(warehouse, *runs):
    for name in runs:
        warehouse.ingest(DUMPS / name)


@pytest.fixture(scope="module")
def lake():
    """A lake of three runs. Only read it."""

    def make(folder):
        Lake(str(folder), create=True)
        with memhouse.open(folder) as warehouse:
            ingest(warehouse, *RUNS)

    return str(shared("readers.lake", make))


@pytest.fixture
def own(lake, tmp_path):
    """A copy of the lake, to write to."""
    return shutil.copytree(lake, str(tmp_path / "lake"))


@pytest.fixture(scope="module")
def as_memhouse_reads(lake):
    """The rows of each relation."""
    return everything(lake)


def sorted_rows(table):
    """The rows as texts, to compare with those of another reader: times without their zone."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            times = table.column(place).cast(pa.timestamp("us"))
            table = table.set_column(place, column.name, times)
    return sorted(map(repr, zip(*table.to_pydict().values(), strict=True)))


def everything(folder):
    """The rows of each relation, as memhouse reads them."""
    with memhouse.open(folder) as warehouse:
        return {name: sorted_rows(warehouse.sql(f'FROM "{name}"').arrow()) for name in relations()}


def breaches(folder):
    with memhouse.open(folder) as warehouse:
        return warehouse.verify().rows.table.to_pylist()


# --- what they read -----------------------------------------------------------------------


def with_polars(lake, relation, columns):
    rows = pl.scan_delta(lake).filter(pl.col("relation") == relation)
    return rows.select(columns).collect().to_arrow()


def with_deltalake(lake, relation, columns):
    chosen = pc.field("relation") == relation
    return DeltaTable(lake).to_pyarrow_table(filters=chosen, columns=columns)


def with_duckdb(lake, relation, columns):
    """From the list of files."""
    added = pa.table(DeltaTable(lake).get_add_actions(flatten=True))
    paths = added.filter(pc.equal(added["partition.relation"], relation))["path"].to_pylist()
    if not paths:
        return arrow.schema(relation).empty_table()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = "FROM read_parquet($1, hive_partitioning = false)"
        rows = connection.sql(query, params=[[f"{lake}/{path}" for path in paths]])
        return rows.to_arrow_table().select(columns)


def test_every_relation_is_read_alike_by_each_in_turn(lake, as_memhouse_reads):
    """Each reader reads a third of them, and all read what has most columns."""
    readers = (with_polars, with_deltalake, with_duckdb)
    asked = [(name, readers[place % 3]) for place, name in enumerate(relations())]
    asked += [(name, reader) for name in ("values", "dumps", "runs") for reader in readers]
    wrong = [
        (name, reader.__name__)
        for name, reader in asked
        if sorted_rows(reader(lake, name, arrow.schema(name).names)) != as_memhouse_reads[name]
    ]
    assert wrong == []
    # A reader without relations sees all columns of all tables.
    counts = pl.scan_delta(lake).group_by("relation").len().collect()
    found = dict(zip(counts["relation"], counts["len"], strict=True))
    assert found == {name: len(rows) for name, rows in as_memhouse_reads.items() if rows}


# --- what they may do ---------------------------------------------------------------------


@pytest.mark.scheduled
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda table: table.optimize.compact(),
        # It writes all files anew, those of the history too.
        pytest.param(
            lambda table: table.optimize.z_order(["module_id"]), marks=pytest.mark.scheduled
        ),
    ],
)
def test_files_that_deltalake_rewrote_are_read_and_written_on(own, as_memhouse_reads, rewrite):
    rewrite(DeltaTable(own))
    assert everything(own) == as_memhouse_reads
    DeltaTable(own).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    DeltaTable(own).create_checkpoint()
    assert everything(own) == as_memhouse_reads
    with memhouse.open(own) as warehouse:
        warehouse.ingest(DUMPS / "seeds", run="again")
        warehouse.label("gpu", labels={"team": "a"})
    assert breaches(own) == []


@pytest.mark.scheduled
def test_deltalake_does_not_rewrite_what_memhouse_compacted_meanwhile(own):
    """Its check of conflicts passes over files that are removed without a change of data."""
    stale = DeltaTable(own)
    with memhouse.open(own) as warehouse:
        warehouse.compact()
    with pytest.raises(CommitFailedError, match="concurrent transaction deleted data"):
        stale.optimize.compact()
    assert breaches(own) == []


@pytest.mark.scheduled
def test_rows_of_others_are_read_and_what_they_added_is_passed_over(own, as_memhouse_reads):
    label = {"relation": ["run_labels"], "run_id": ["gpu"], "key": ["team"], "value": ["a"]}
    costs = {"relation": ["costs"], "run_id": ["gpu"], "euros": [12.5]}
    for rows in (label, costs):
        write_deltalake(own, pa.table(rows), mode="append", schema_mode="merge")
    assert everything(own) == as_memhouse_reads | {"run_labels": ["('gpu', 'team', 'a')"]}
    with memhouse.open(own) as warehouse:
        warehouse.compact()
        warehouse.ingest(DUMPS / "seeds", run="again")
    rows = DeltaTable(own).to_pyarrow_table(columns=["relation", "euros"])
    assert rows.filter(pc.equal(rows["relation"], "costs"))["euros"].to_pylist() == [12.5]


@pytest.mark.scheduled
def test_what_two_compactions_of_deltalake_doubled_is_found_and_undone(own, as_memhouse_reads):
    """Neither sees that the other removed the same files: `docs/lake.md` warns of this."""
    one, other = DeltaTable(own), DeltaTable(own)
    before = one.version()
    one.optimize.compact()
    other.optimize.compact()
    assert breaches(own) != []
    DeltaTable(own).restore(before)
    assert everything(own) == as_memhouse_reads
    with memhouse.open(own) as warehouse:
        warehouse.ingest(DUMPS / "seeds", run="again")


# --- what is listed -----------------------------------------------------------------------


def test_a_lake_lists_and_exports_the_tables_and_columns_of_a_file(lake, tmp_path):
    with (
        memhouse.open(lake, read_only=True) as of_lake,
        memhouse.open(tmp_path / "file.duckdb") as of_file,
    ):
        ingest(of_file, *RUNS)
        both = (of_lake, of_file)
        counts = [
            {row["table"]: row["rows"] for row in warehouse.tables().table.to_pylist()}
            for warehouse in both
        ]
        assert counts[0].keys() == counts[1].keys()
        # Of what is worked out anew a file also counts what it replaced.
        stored = counts[0].keys() - {"gone", "history", "lineages"}
        assert [table for table in stored if counts[0][table] != counts[1][table]] == []
        assert counts[0]["modules"] > 10
        for table in counts[0]:
            listed, stored = (warehouse.tables(table).table.to_pylist() for warehouse in both)
            # A file stores a shape in two columns.
            assert listed == [row for row in stored if not row["column"].startswith("_")]
        for name in ("allocations", "timeline"):
            texts = []
            for warehouse in both:
                warehouse.export(name, tmp_path / "all.csv")
                texts.append(sorted(Path(tmp_path / "all.csv").read_text().splitlines()))
            assert texts[0] == texts[1]
        for warehouse in both:
            with pytest.raises(UsageError, match="nope"):
                warehouse.tables("nope")
