"""The order of instructions: laws over made programs, all of whose orders are tried, and dumps."""

import random
from itertools import permutations

import pytest

from memhouse.advice.asked_program import read_layout, read_program
from memhouse.advice.findings.order import another_order, order_of
from memhouse.xla.order import Ordering
from memhouse.xla.order_buffers import Buffers

from ..support.advised import compiled, program_of
from ..support.dumps import DUMPS
from ..support.hlo import program_of as read_program_text
from ..support.warehouse import everything, fill, reading, rows

MIB = 1 << 20


def made(reads, sizes, waits=()):
    """A program of custom calls in this order, each of which reads earlier ones.

    waits: by instruction those that must run before, though it does not read them.
    """
    lines = [
        f"  %i{at} = f32[{size}]{{0}} custom-call({', '.join(f'%i{each}' for each in operands)})"
        f', custom_call_target="f"{named(at, waits)}'
        for at, (operands, size) in enumerate(zip(reads, sizes, strict=True))
    ]
    lines[-1] = lines[-1].replace("  %", "  ROOT %")
    text = "HloModule made, is_scheduled=true\n\nENTRY %main () -> f32[1] {\n"
    program = read_program_text(f"{text}{chr(10).join(lines)}\n}}\n")
    touches = [
        {at} | {user for user, operands in enumerate(reads) if at in operands}
        for at in range(len(sizes))
    ]
    return Ordering(program, range(len(sizes)), Buffers(sizes, touches, defined_bytes=sizes))


def named(at, waits):
    before = ", ".join(f"%i{each}" for each in waits[at]) if waits else ""
    return f", control-predecessors={{{before}}}" if before else ""


def peak(order, reads, sizes):
    """What an order needs: each result is there until the last that reads it."""
    place = {each: at for at, each in enumerate(order)}
    ends = [
        max([place[at], *(place[to] for to, of in enumerate(reads) if at in of)]) for at in place
    ]
    ends = dict(zip(place, ends, strict=True))
    return max(
        sum(sizes[each] for each in order if place[each] <= now <= ends[each])
        for now in range(len(order))
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_order_is_below_the_bound(seed):
    chosen = random.Random(seed)
    count = 7
    reads = [sorted(chosen.sample(range(at), min(at, chosen.randint(0, 2)))) for at in range(count)]
    waits = [chosen.sample(range(at), min(at, chosen.choice((0, 0, 1)))) for at in range(count)]
    sizes = [2 ** (2 * at) + chosen.randint(1, 900) for at in range(count)]
    # Of equal sizes a result may take the place of an operand, and here none are equal.
    peaks = made(reads, sizes, waits)
    follows = [(each, at) for at in range(count) for each in (*reads[at], *waits[at])]
    allowed = [
        order
        for order in permutations(range(count))
        if all(order.index(each) < order.index(at) for each, at in follows)
    ]
    least = min(peak(order, reads, sizes) for order in allowed)
    assert peaks.now_bytes == peak(range(count), reads, sizes)
    assert peaks.bound_bytes <= least <= peaks.best_bytes <= peaks.now_bytes
    assert least <= peaks.depth_first_bytes


def test_branches_are_made_one_after_the_other():
    """As made all branches are there before the first is read."""
    count = 500
    reads = [[]] * count + [[0], *([at, count + at - 1] for at in range(1, count))]
    peaks = made(reads, [1000] * count + [1] * count)
    assert peaks.now_bytes >= 1000 * count
    assert peaks.best_bytes == peaks.depth_first_bytes <= peaks.bound_bytes + 2000 <= 5000


@pytest.fixture(scope="module")
def program():
    with reading(compiled()) as store:
        yield lambda name, run: program_of(store, name, run)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        pytest.param("cpu/microbatch_images", "advice-edits", marks=pytest.mark.slow),
        ("cpu/right_batch_norm", "advice-edits"),
        ("cpu/cache_carried_by_scan/before", "advice"),
        ("tpu/chunk_loss", "advice-edits"),
    ],
)
def test_the_order_of_a_dump_needs_what_xla_says(program, name, run):
    before = program(name, run)
    layout, peaks = before.layout, order_of(before)
    temps = layout.peak_bytes - int(layout.allocation_bytes[~layout.is_temp].sum())
    assert peaks.now_bytes == pytest.approx(temps, abs=MIB / 4)
    assert peaks.bound_bytes <= peaks.best_bytes <= peaks.now_bytes
    assert order_of(before).best_bytes == peaks.best_bytes
    found = {finding.kind: finding for finding in another_order(before)}
    if before.platform == "cpu" and peaks.depth_first_bytes < 0.9 * peaks.now_bytes:
        told = found["another order"]
        assert told.saving_bytes == peaks.now_bytes - peaks.depth_first_bytes
        assert "xla_cpu_enable_concurrency_optimized_scheduler=false" in told.write
    else:
        assert "another order" not in found
    # No flag is told for TPU.
    assert before.platform == "cpu" or "flag" not in "".join(each.write for each in found.values())


def test_the_metrics_are_those_of_advice_and_equal_in_two_runs(db):
    """They are worked out if asked, also of modules that are stored without them."""
    columns = "module_id, live_bound_bytes, order_bytes, order_bound_bytes"
    query = f"SELECT {columns} FROM module_memory WHERE temp_bytes > 0"
    fill(db, DUMPS / "tpu/llama-v5e", DUMPS / "cpu/jax-0.10.2")
    assert {each for _, _, *known in rows(db, query) for each in known} == {None}
    fill(db, DUMPS / "tpu/llama-v5e", DUMPS / "cpu/jax-0.10.2", orders=True)
    found = rows(db, f"{query} AND memory_space = 0 ORDER BY ALL")
    with reading(db) as store:
        for module_id, live, saved, bound in found:
            layout = read_layout(store, module_id)
            ((dump_id,),) = store.connection.sql(
                f"SELECT MIN(dump_id) FROM dumps WHERE module_id = {module_id}"
            ).fetchall()
            peaks = order_of(read_program(store, module_id, dump_id, layout))
            assert saved == peaks.now_bytes - peaks.best_bytes >= 0
            assert bound == (peaks.bound_bytes if peaks.now_bytes <= live else None)
    assert [bound is None for *_, bound in found] == [True, False]
    before = everything(db)
    fill(db, DUMPS / "tpu/llama-v5e", orders=True)
    assert everything(db) == before
