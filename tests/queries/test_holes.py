"""`holes_at`: what is free between the live buffers of each temp allocation."""

from itertools import groupby, pairwise
from operator import itemgetter

import pytest

from ..support.warehouse import reading

ALLOCATIONS = """SELECT memory_space, allocation_index, size_bytes
    FROM allocations WHERE module_id = ? AND is_temp ORDER BY ALL"""
VALUES = """SELECT allocation_index, offset_bytes, size_bytes, start_time, end_time
    FROM "values" JOIN live_ranges USING (module_id, value_id) WHERE module_id = ?"""
HOLES = """SELECT memory_space, allocation_index, size_bytes, free_bytes, largest_hole_bytes, holes
    FROM HOLES_AT(?, NULL, ?)"""


def plain_holes(size, taken):
    """The sizes of the holes: each stretch between two ends of buffers is free or not."""
    ends = sorted({0, size, *(end for buffer in taken for end in buffer)})
    stretches = [
        (not any(start <= low and high <= end for start, end in taken), high - low)
        for low, high in pairwise(ends)
    ]
    return [
        sum(length for _, length in group)
        for is_free, group in groupby(stretches, itemgetter(0))
        if is_free
    ]


@pytest.mark.parametrize("workload", ["llama-v5e", "decode-h100", "jax-0.10.2"])
def test_the_holes_are_those_of_a_plain_count(filled, workload):
    compared = 0
    with reading(filled) as store:
        ask = store.connection.execute
        ((module, length),) = ask(
            """SELECT module_id, schedule_length FROM latest JOIN modules USING (module_id)
            WHERE workload = ? ORDER BY schedule_length DESC LIMIT 1""",
            [workload],
        ).fetchall()
        allocations = ask(ALLOCATIONS, [module]).fetchall()
        values = ask(VALUES, [module]).fetchall()
        for time in (0, length // 3, length // 2, length - 1):
            expected = []
            for space, index, size in allocations:
                taken = [
                    (offset, offset + bytes_)
                    for at, offset, bytes_, start, end in values
                    if at == index and start <= time <= end
                ]
                holes = plain_holes(size, taken)
                compared += len(holes)
                expected.append((space, index, size, sum(holes), max(holes, default=0), len(holes)))
            assert ask(HOLES, [module, time]).fetchall() == expected
    assert compared > 4


def test_what_is_free_at_the_peak_is_the_fragmentation(filled):
    with reading(filled) as store:
        sums = store.connection.execute(
            """SELECT fragmentation_bytes, SUM(free_bytes), module_id, module_memory.memory_space
            FROM module_memory JOIN modules USING (module_id),
                LATERAL (FROM HOLES_AT(module_memory.module_id, module_memory.memory_space, NULL))
                    AS holes_at
            WHERE origin <> 'estimated' GROUP BY ALL"""
        ).fetchall()
    assert len(sums) > 10
    assert all(wasted == free for wasted, free, *_ in sums)
