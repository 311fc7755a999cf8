"""The scenarios of `data/scenarios.json` through a warehouse, each in ten orders of ingestion."""

from dataclasses import replace

import pytest

from ..support.plain_rows import in_memory, stored_histories, write_run
from ..support.scenarios import SCENARIOS, laid_out
from ..support.warehouse import fill, reading, rows

in_scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda case: case.name)
in_real_scenarios = pytest.mark.parametrize(
    "scenario", [case for case in SCENARIOS if case.is_real], ids=lambda case: case.name
)


@in_scenarios
def test_the_chains_are_as_told_in_whatever_order_runs_enter(scenario):
    found = []
    for order in scenario.orders():
        with in_memory() as store:
            for run in order:
                write_run(store, run, scenario.dumps_of(run))
            found.append(stored_histories(store))
    assert scenario.told(found[0]) | {"base": scenario.expected["base"]} == scenario.expected
    assert all(other == found[0] for other in found[1:])


@in_real_scenarios
def test_real_dumps_have_the_chains_as_told(scenario, nights, tmp_path):
    db = tmp_path / "all.duckdb"
    *_, order = scenario.orders()
    for run in order:
        folder = laid_out(scenario, run, nights, tmp_path / run.run_id)
        labels = {"branch": run.branch} if run.branch else {}
        (summary,) = fill(db, folder, run_id=run.run_id, run_at=run.run_at, labels=labels)
        assert summary.problems == []
    with reading(db) as store:
        found = stored_histories(store)
    expected = {(dump.run_id, *dump.group): dump.dump_id for dump in scenario.dumps}
    query = "SELECT dump_id, run_id, workload, module_name, platform FROM dumps"
    names = {dump_id: scenario.names[expected[tuple(key)]] for dump_id, *key in rows(db, query)}
    told = replace(scenario, names=names).told(found)
    assert told | {"base": scenario.expected["base"]} == scenario.expected
