"""The scenarios of `data/scenarios.json` through a warehouse, runs out of order."""

from dataclasses import replace

import pytest

from ..support.plain_rows import in_memory, stored_histories, write_run
from ..support.rounds import rounds
from ..support.scenarios import SCENARIOS, laid_out
from ..support.warehouse import fill, reading
from ..support.warehouse import rows as rows_of


@pytest.mark.slow
def test_the_chains_are_as_told_in_whatever_order_runs_enter():
    wrong = []
    for scenario in SCENARIOS:
        for order in scenario.orders()[-rounds(1) :]:
            with in_memory() as store:
                for run in order:
                    write_run(store, run, scenario.dumps_of(run))
                told = scenario.told(stored_histories(store))
            if told | {"base": scenario.expected["base"]} != scenario.expected:
                wrong.append((scenario.name, [run.run_id for run in order], told))
    assert wrong == []


@pytest.mark.slow
def test_real_dumps_have_the_chains_as_told(nights, tmp_path):
    wrong = []
    for scenario in (case for case in SCENARIOS if case.is_real):
        db = tmp_path / f"{scenario.name}.duckdb"
        *_, order = scenario.orders()
        for run in order:
            folder = laid_out(scenario, run, nights, tmp_path / scenario.name / run.run_id)
            labels = {"branch": run.branch} if run.branch else {}
            (summary,) = fill(db, folder, run_id=run.run_id, run_at=run.run_at, labels=labels)
            assert summary.problems == []
        with reading(db) as store:
            found = stored_histories(store)
        expected = {(dump.run_id, *dump.group): dump.dump_id for dump in scenario.dumps}
        query = "SELECT dump_id, run_id, workload, module_name, platform FROM dumps"
        dumps = rows_of(db, query)
        names = {dump_id: scenario.names[expected[tuple(key)]] for dump_id, *key in dumps}
        told = replace(scenario, names=names).told(found)
        if told | {"base": scenario.expected["base"]} != scenario.expected:
            wrong.append((scenario.name, told))
    assert wrong == []
