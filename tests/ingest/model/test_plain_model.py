"""The engine, its rules written again in plain Python, and XLA: all three agree."""

import gzip
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings

from memhouse.xla.analysis import Analysis
from memhouse.xla.program import NONE
from memhouse.xla.sizes import value_sizes

from ...support.dumps import DUMPS, copy_dump
from ...support.rounds import rounds
from . import against_dumps, placement_against_dumps, plain_placement, plain_rules
from .random_programs import scheduled_hlo
from .texts import analyse_text, figures, schedule

pytestmark = pytest.mark.slow
FOLDERS = sorted(
    {path.parent.relative_to(DUMPS) for path in DUMPS.rglob("*after_optimizations.txt*")}
)
# JAX 0.4.23 does not say that its text is scheduled.
UNSCHEDULED = {"cpu/jax-0.4.23"}


def read(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def test_the_plain_rules_say_what_xla_says(tmp_path):
    failures = []
    for folder in FOLDERS:
        copy_dump(f"{folder}/*", tmp_path / folder)
        compared = 0
        for path in (tmp_path / folder).rglob("*after_optimizations.txt"):
            tally = against_dumps.Tally()
            said = against_dumps.compare(path, tally)
            if tally.notes or said not in ("", "not compared", "the module is not scheduled"):
                failures.append((path.name, said, tally.notes))
            compared += not said
            if "cpu_after" in path.name and (found := placement_against_dumps.compare(path)):
                failures += [(path.name, found)] if found[0] != found[1] else []
        if (compared == 0) != (folder.as_posix() in UNSCHEDULED):
            failures.append((folder, compared))
    assert failures == []


def as_plain(analysis: Analysis) -> plain_rules.Liveness:
    """The engine's answer in the form of the plain rules."""
    names, flow, lives = analysis.program.names, analysis.flow, analysis.liveness
    slots = flow.slots

    def position(slot: int) -> plain_rules.Position:
        return names[slots.row[slot]], slots.index(slot)

    values = [position(slot) for slot in flow.defined_at]
    positions, uses, sets = defaultdict(set), defaultdict(set), defaultdict(set)
    for slot, value in enumerate(flow.value):
        if value != NONE:
            positions[values[value]].add(position(slot))
    for value, row, number, slot in zip(
        flow.use_value, flow.use_row, flow.use_operand, flow.use_slot, strict=True
    ):
        uses[values[value]].add((names[row], number, slots.index(slot)))
    for value, number in zip(values, lives.alias_set, strict=True):
        sets[number].add(value)
    return plain_rules.Liveness(
        schedule(analysis),
        set(values),
        {value for value, is_phi in zip(values, flow.is_phi, strict=True) if is_phi},
        dict(positions),
        dict(uses),
        sorted(sets.values(), key=sorted),
        {
            value: (start, end)
            for value, start, end in zip(values, lives.start, lives.end, strict=True)
            if start != NONE
        },
    )


@settings(max_examples=rounds(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_random_programs_have_the_same_lives_and_peaks(text: str):
    analysis = analyse_text(text)
    plain, ours = plain_rules.liveness(text), as_plain(analysis)
    assert ours.schedule == plain.schedule
    assert ours.values == plain.values
    assert ours.phis == plain.phis
    assert ours.positions == plain.positions
    assert ours.uses == {value: places for value, places in plain.uses.items() if places}
    assert ours.alias_sets == sorted(plain.alias_sets, key=sorted)
    assert ours.live_ranges == plain.live_ranges
    slots, sizes = analysis.flow.slots, value_sizes(analysis.flow, "cpu").size_bytes
    values = [
        (analysis.program.names[slots.row[slot]], slots.index(slot))
        for slot in analysis.flow.defined_at
    ]
    peaks = {row["memory_space"]: row["peak_bytes"] for row in figures(text, "cpu")}
    assert peaks.get(0, 0) == plain_placement.peak(text, dict(zip(values, sizes, strict=True)))[1]
