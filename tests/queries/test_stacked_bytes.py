"""The bytes of the stacked timeline against the occupancy that ingest worked out."""

from collections import Counter

import numpy as np
import pytest

from memhouse.queries.owners import owners
from memhouse.queries.reporting.module.memory_over_time import stacks_of
from memhouse.queries.reporting.module.module_buffers import module_buffers
from memhouse.queries.reporting.module.module_spaces import module_spaces

from ..support.warehouse import reading


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


def modules(store):
    return store.rows("SELECT DISTINCT ON (module_id) module_id, dump_id FROM dumps").to_pylist()


def at(times, steps, values):
    return values[..., np.searchsorted(steps, times, "right") - 1]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["pass", "category"])
def test_the_stacks_add_up_to_what_is_occupied_at_every_time(store, by):
    compared = 0
    for module in modules(store):
        spaces = module_spaces(store, module["module_id"], module["dump_id"])
        for number, space in spaces.items():
            if space.peak_bytes is None:
                continue
            occupied = store.rows(
                "SELECT start_time, occupied_bytes FROM occupancy"
                " WHERE module_id = $1 AND memory_space = $2 ORDER BY start_time",
                [module["module_id"], number],
            )
            buffers = module_buffers(store, module["module_id"], number)
            if not len(buffers):
                continue
            stacks = stacks_of(space, buffers)[by]
            assert (stacks.sums >= 0).all()
            known_times = occupied["start_time"].to_numpy()
            known = occupied["occupied_bytes"].to_numpy()
            every = np.arange(space.schedule_length or 0)
            drawn = at(every, stacks.times, stacks.sums).sum(axis=0)
            assert (drawn == at(every, known_times, known)).all()
            assert drawn.max() == space.peak_bytes
            compared += 1
    assert compared > 20


def test_a_pass_takes_what_the_buffers_of_the_peak_say(store):
    (module,) = store.rows(
        "SELECT module_id, dump_id FROM dumps"
        " WHERE workload = 'llama-v5e' AND module_name = 'jit_train_step' LIMIT 1"
    ).to_pylist()
    space = module_spaces(store, module["module_id"], module["dump_id"])[0]
    buffers = module_buffers(store, module["module_id"])
    stacks = stacks_of(space, buffers)["pass"]
    drawn = dict(
        zip(stacks.names, at(space.peak_time, stacks.times, stacks.sums).tolist(), strict=True)
    )
    told = store.rows(
        "SELECT COALESCE(pass, 'no pass is known') AS name, SUM(counted_bytes) AS bytes"
        " FROM peak_buffers WHERE module_id = $1 AND memory_space = 0 GROUP BY ALL",
        [module["module_id"]],
    ).to_pylist()
    assert {name: size for name, size in drawn.items() if size} == {
        row["name"]: row["bytes"] for row in told if row["bytes"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["llama-v5e", "decode-h100", "llama7b-oom-v5e"])
@pytest.mark.parametrize("by", ["pass", "category"])
def test_at_any_time_the_stacks_are_the_owners(store, workload, by):
    (module,) = store.rows(
        "SELECT module_id, dump_id FROM dumps INNER JOIN modules USING (module_id)"
        " WHERE workload = $1 ORDER BY schedule_length DESC LIMIT 1",
        [workload],
    ).to_pylist()
    for number, space in module_spaces(store, module["module_id"], module["dump_id"]).items():
        buffers = module_buffers(store, module["module_id"], number)
        if not len(buffers) or not space.schedule_length:
            continue
        stacks = stacks_of(space, buffers)[by]
        for time in np.linspace(0, space.schedule_length - 1, 5).astype(int).tolist():
            found = owners(store, module["module_id"], None, number, by=by, at=time)
            owned = Counter()
            for row in found.table.to_pylist():
                name = "no pass is known" if row[by] == "(not known)" else row[by]
                owned[name] += row["counted_bytes"]
            drawn = at(time, stacks.times, stacks.sums).tolist()
            assert +Counter(dict(zip(stacks.names, drawn, strict=True))) == +owned
