"""What a change of a lake comes to, where others stored the same before it."""

from datetime import UTC, datetime

import pytest

import memhouse.lake
from memhouse.schema import arrow
from memhouse.schema.stores.base import Batch

from ..support.clock import at
from ..support.dumps import DATA, DUMPS
from ..support.lakes import lake_in, table_rows
from ..support.plain_rows import write_run
from ..support.warehouse import reading
from .plain_history import Run

pytest.importorskip("deltalake")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def dumped(number, run_id, status, module_id, peak):
    """A dump of a module, with a peak that tells who stored the module."""
    of_run = {"run_id": run_id, "workload": run_id, "module_name": "m", "occurrence": number}
    dump = {"dump_id": number, "module_id": module_id, "status": status, "oom": False} | of_run
    memory = {"module_id": module_id, "memory_space": 0, "peak_bytes": peak}
    module = {"module_id": module_id, "module_name": "m"}
    tables = {"dumps": dump, "modules": module, "module_memory": memory}
    return Batch({name: arrow.rows(name, [row]) for name, row in tables.items()})


def test_of_two_that_store_a_module_the_first_stays_unless_only_the_second_read_it_whole(tmp_path):
    cases = {("ok", "ok"): 1, ("partial", "ok"): 2, ("ok", "partial"): 1, ("partial", "partial"): 1}
    with lake_in(tmp_path / "lake") as lake:
        for run in ("first", "second"):
            write_run(lake, Run(run, NOW, 1), [])
        for module, (first, second) in enumerate(cases, 1):
            lake.write(dumped(2 * module, "first", first, module, 1))
            # It was planned when the module was not there.
            lake.write(dumped(2 * module + 1, "second", second, module, 2))
        peaks = lake.rows(
            "SELECT module_id, peak_bytes FROM module_memory ORDER BY ALL"
        ).to_pylist()
        assert [tuple(row.values()) for row in peaks] == list(enumerate(cases.values(), 1))
        modules = lake.rows("SELECT module_id FROM modules ORDER BY ALL")["module_id"].to_pylist()
        assert modules == [1, 2, 3, 4]
        assert len(lake.rows("SELECT dump_id FROM dumps")) == 8


def test_who_stores_a_run_anew_goes_on_with_it(tmp_path):
    """It is not the run that was there when this process began, but its own."""
    with lake_in(tmp_path / "lake") as lake:
        write_run(lake, Run("r", NOW, 1), [])
        row = lake.known("r").run
        anew = arrow.rows("runs", [row | {"ingested_at": NOW}])
        lake.write(Batch({"runs": anew}, runs=["r"]))
        lake.write(dumped(1, "r", "ok", 1, 1))
        assert lake.rows("SELECT dump_id FROM dumps")["dump_id"].to_pylist() == [1]


def test_the_part_of_a_host_is_replaced_alone_as_in_a_file(tmp_path):
    """With its messages, and what only it referred to."""
    log = DATA / "oom/jax0.10.2-args.txt"
    for place in (tmp_path / "file.duckdb", memhouse.lake.init(tmp_path / "lake")):
        with at(NOW), memhouse.open(place) as warehouse:

            def put(path, host, warehouse=warehouse, **options):
                warehouse.ingest(path, run="night", host=host, **options)

            for host in "ab":
                put(DUMPS / "cpu/jax-0.9.0", host)
                put(log, host)
            put(DUMPS / "cpu/jax-0.10.2", "a", replace=True)
            put(DUMPS / "cpu/jax-0.10.2", "b", replace=True)
            put(log, "b")
            # Nor do the flags of what is pruned stay.
            warehouse.ingest(DUMPS / "gpu/decode-h100")
            warehouse.prune(["decode-h100"])
    with reading(tmp_path / "file.duckdb") as file, lake_in(tmp_path / "lake") as lake:
        found = [table_rows(store) for store in (file, lake)]
    assert len(found[0]["oom_reports"]) == 1
    assert found[1] == found[0]
