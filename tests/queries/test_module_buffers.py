"""The table of buffers that the parts of a report share."""

import pyarrow.compute as pc
import pytest

from memhouse.queries.reporting.module.module_buffers import module_buffers

from ..support.warehouse import reading

SPACES = """
SELECT module_memory.module_id, module_memory.memory_space, module_memory.peak_bytes,
    module_memory.total_bytes - module_memory.thread_local_bytes AS allocated_bytes,
    COUNT("_buffers".module_id) AS buffers
FROM module_memory
LEFT JOIN _buffers USING (module_id, memory_space)
GROUP BY ALL
"""


@pytest.fixture(scope="module")
def store(filled):
    with reading(filled) as opened:
        yield opened


def test_the_buffers_of_every_module_add_up_to_its_peak(store):
    spaces = store.rows(SPACES).to_pylist()
    assert any(space["buffers"] > 100 for space in spaces)
    for space in spaces:
        found = module_buffers(store, space["module_id"], space["memory_space"])
        assert len(found) == space["buffers"]
        if space["peak_bytes"] is not None:
            assert (pc.sum(found["peak_counted_bytes"]).as_py() or 0) == space["peak_bytes"]
        if space["allocated_bytes"] is not None:
            for row in found.select(["address", "size_bytes"]).to_pylist():
                assert 0 <= row["address"] <= space["allocated_bytes"] - row["size_bytes"]
