"""Other programs and a lake: what they read is what memhouse reads, and what they may do to it."""

import shutil

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import memhouse
from memhouse.schema import arrow
from memhouse.schema.lake.layout import relations
from memhouse.schema.lake.snapshot import Lake

from ..support.command import run_memhouse
from ..support.dumps import DUMPS

GOOD = "35 checks of 12 modules: no breaches\n"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake of three runs. Only read it."""
    folder = str(tmp_path_factory.mktemp("lakes") / "lake")
    Lake(folder, create=True)
    with memhouse.open(folder) as warehouse:
        for name in ("tpu", "seeds", "gpu"):
            warehouse.ingest(DUMPS / name)
    return folder


@pytest.fixture
def own(lake, tmp_path):
    """A copy of the lake, to write to."""
    return shutil.copytree(lake, str(tmp_path / "lake"))


@pytest.fixture(scope="module")
def as_memhouse_reads(lake):
    """The rows of each relation."""
    return everything(lake)


def sorted_rows(table):
    """The rows as texts, to compare with those of another reader."""
    return sorted(map(repr, zip(*table.to_pydict().values(), strict=True)))


def everything(folder):
    """The rows of each relation, as memhouse reads them."""
    with memhouse.open(folder) as warehouse:
        return {name: sorted_rows(warehouse.sql(f'FROM "{name}"').arrow()) for name in relations()}


@pytest.mark.parametrize("relation", relations())
def test_polars_reads_every_relation(lake, as_memhouse_reads, relation):
    columns = arrow.schema(relation).names
    rows = pl.scan_delta(lake).filter(pl.col("relation") == relation).select(columns).collect()
    assert sorted_rows(rows.to_arrow()) == as_memhouse_reads[relation]


@pytest.mark.parametrize("relation", relations())
def test_the_deltalake_package_reads_every_relation(lake, as_memhouse_reads, relation):
    columns = arrow.schema(relation).names
    chosen = pc.field("relation") == relation
    rows = DeltaTable(lake).to_pyarrow_table(filters=chosen, columns=columns)
    assert sorted_rows(rows) == as_memhouse_reads[relation]


@pytest.mark.parametrize("relation", relations())
def test_duckdb_reads_every_relation_from_the_list_of_files(lake, as_memhouse_reads, relation):
    added = pa.table(DeltaTable(lake).get_add_actions(flatten=True))
    paths = added.filter(pc.equal(added["partition.relation"], relation))["path"].to_pylist()
    files = [f"{lake}/{path}" for path in paths]
    if not files:
        assert as_memhouse_reads[relation] == []
        return
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = "FROM read_parquet($1, hive_partitioning = false)"
        rows = connection.sql(query, params=[files]).to_arrow_table()
    assert sorted_rows(rows.select(arrow.schema(relation).names)) == as_memhouse_reads[relation]


def test_a_reader_without_relations_sees_all_columns_of_all_tables(lake, as_memhouse_reads):
    counts = pl.scan_delta(lake).group_by("relation").len().collect()
    found = dict(zip(counts["relation"], counts["len"], strict=True))
    assert found == {name: len(rows) for name, rows in as_memhouse_reads.items() if rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda table: table.optimize.compact(),
        # It writes all files anew, those of the history too.
        lambda table: table.optimize.z_order(["module_id"]),
    ],
)
def test_files_that_deltalake_rewrote_are_read_and_written_on(own, as_memhouse_reads, rewrite):
    rewrite(DeltaTable(own))
    assert everything(own) == as_memhouse_reads
    DeltaTable(own).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    DeltaTable(own).create_checkpoint()
    assert everything(own) == as_memhouse_reads
    assert run_memhouse("ingest", "--db", own, DUMPS / "cpu").returncode == 0
    assert run_memhouse("label", "--db", own, "gpu", "team=a").returncode == 0
    done = run_memhouse("verify", "--db", own)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_deltalake_does_not_rewrite_what_memhouse_compacted_meanwhile(own):
    """Its check of conflicts passes over files that are removed without a change of data."""
    stale = DeltaTable(own)
    assert run_memhouse("compact", "--db", own).returncode == 0
    with pytest.raises(CommitFailedError, match="concurrent transaction deleted data"):
        stale.optimize.compact()
    assert run_memhouse("verify", "--db", own).stderr == GOOD


@pytest.mark.slow
def test_rows_of_others_are_read(own, as_memhouse_reads):
    label = {"relation": ["run_labels"], "run_id": ["gpu"], "key": ["team"], "value": ["a"]}
    write_deltalake(own, pa.table(label), mode="append", schema_mode="merge")
    found = everything(own)
    assert found.pop("run_labels") == ["('gpu', 'team', 'a')"]
    assert found == {name: rows for name, rows in as_memhouse_reads.items() if name != "run_labels"}


@pytest.mark.slow
def test_a_relation_and_a_column_of_others_are_passed_over(own, as_memhouse_reads):
    costs = {"relation": ["costs"], "run_id": ["gpu"], "euros": [12.5]}
    write_deltalake(own, pa.table(costs), mode="append", schema_mode="merge")
    assert everything(own) == as_memhouse_reads
    assert run_memhouse("compact", "--db", own).returncode == 0
    assert run_memhouse("ingest", "--db", own, DUMPS / "cpu").returncode == 0
    rows = DeltaTable(own).to_pyarrow_table(columns=["relation", "euros"])
    assert rows.filter(pc.equal(rows["relation"], "costs"))["euros"].to_pylist() == [12.5]


@pytest.mark.slow
def test_what_two_compactions_of_deltalake_doubled_is_found_and_undone(own, as_memhouse_reads):
    """Neither sees that the other removed the same files: `docs/lake.md` warns of this."""
    one, other = DeltaTable(own), DeltaTable(own)
    before = one.version()
    one.optimize.compact()
    other.optimize.compact()
    assert run_memhouse("verify", "--db", own).returncode == 1
    DeltaTable(own).restore(before)
    assert everything(own) == as_memhouse_reads
    assert run_memhouse("ingest", "--db", own, DUMPS / "cpu").returncode == 0
