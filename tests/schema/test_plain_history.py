"""The chains against an independent oracle, which itself must say what the scenarios say."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memhouse.queries.catalogue import checks
from memhouse.queries.verify import breaches

from ..support.plain_rows import (
    change_dump,
    change_run,
    in_memory,
    stored_histories,
    write_at_once,
    write_dumps,
    write_run,
)
from ..support.random_histories import histories, steps
from ..support.rounds import rounds
from ..support.scenarios import SCENARIOS
from .plain_history import Dump, Run, plain_bases, plain_history, plain_pairs


def test_the_oracle_says_what_the_scenarios_say():
    wrong = []
    for scenario in SCENARIOS:
        for order in scenario.orders():
            runs = scenario.ingested_in(order)
            told = scenario.told(plain_history(runs, scenario.dumps))
            if told | {"base": plain_bases(runs)} != scenario.expected:
                wrong.append((scenario.name, [run.run_id for run in order], told))
    assert wrong == []


def at_random(examples):
    return settings(
        deadline=None,
        max_examples=rounds(examples),
        suppress_health_check=[HealthCheck.too_slow],
    )


@at_random(20)
@given(history=histories())
def test_chains_are_those_of_the_oracle(history):
    runs = [run for run, _ in history]
    dumps = [dump for _, its_dumps in history for dump in its_dumps]
    with in_memory() as store:
        write_at_once(store, runs, dumps)
        assert stored_histories(store) == plain_history(runs, dumps)


@at_random(5)
@given(data=st.data())
def test_chains_are_those_of_the_oracle_after_every_change(data):
    history = data.draw(histories())
    runs: dict[str, Run] = {}
    dumps: dict[int, Dump] = {}
    (check,) = [check for check in checks() if check.name == "dumps_have_series"]
    has_moved = False
    with in_memory() as store:
        for kind, run_id, change in data.draw(steps(history)):
            # Then series stay as they are, and are not paired again.
            has_moved |= kind in ("delete", "label", "time")
            if kind == "enter":
                run, its_dumps = change
                runs[run_id] = write_run(store, run, its_dumps)
                dumps |= {dump.dump_id: dump for dump in its_dumps}
            elif kind == "delete":
                store.delete_runs([run_id])
                del runs[run_id]
                dumps = {key: dump for key, dump in dumps.items() if dump.run_id != run_id}
            elif kind == "dump":
                change_dump(store, change)
                dumps[change.dump_id] = change
            elif kind == "label":
                runs[run_id] = replace(runs[run_id], **change)
                store.label([run_id], {key: value or None for key, value in change.items()})
            elif kind == "time":
                runs[run_id] = replace(runs[run_id], **change)
                change_run(store, runs[run_id])
            else:
                with store.replacing(run_id, None):
                    write_dumps(store, change)
                dumps = {key: dump for key, dump in dumps.items() if dump.run_id != run_id}
                dumps |= {dump.dump_id: dump for dump in change}
            stored = stored_histories(store)
            kept = stored if has_moved else None
            assert stored == plain_history(runs.values(), dumps.values(), kept)
            assert breaches(store, check).to_pylist() == []


@at_random(10)
@given(history=histories())
def test_pairs_of_two_runs_are_those_of_the_oracle(history):
    runs = [run for run, _ in history]
    dumps = [dump for _, its_dumps in history for dump in its_dumps]
    a, b = runs[0].run_id, runs[-1].run_id
    with in_memory() as store:
        write_at_once(store, runs, dumps)
        pairs = [
            (pair["a_dump_id"], pair["b_dump_id"], pair["matched_by"])
            for pair in store.pairs(a, b).to_pylist()
        ]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == plain_pairs(dumps, a, b)
