"""The engine and the plain rules give the same answers for random programs."""

from collections import defaultdict

from hypothesis import HealthCheck, given, settings

from memhouse.ingest.model.derived import Derived, derive
from memhouse.ingest.model.sharing import estimate
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines

from ...support.rounds import rounds
from . import plain_placement, plain_rules
from .random_programs import scheduled_hlo
from .texts import derived


def position(name: str, index: str) -> plain_rules.Position:
    """A position as the plain rules name it: `{1,0}` is a tuple of numbers."""
    return name, tuple(int(part) for part in index.strip("{}").split(",") if part)


def as_plain(found: Derived) -> plain_rules.Liveness:
    """The engine's answer in the form of the plain rules."""
    names = found.program.names.to_pylist()

    def places(table):
        return [
            position(names[row["instruction_id"]], row["shape_index"]) for row in table.to_pylist()
        ]

    dataflow = found.dataflow
    values = places(dataflow.values_table())
    positions, uses, sets = defaultdict(set), defaultdict(set), defaultdict(set)
    table = dataflow.positions_table()
    for number, place in zip(table["value_id"].to_pylist(), places(table), strict=True):
        positions[values[number]].add(place)
    for row in dataflow.uses_table().to_pylist():
        name, index = position(names[row["instruction_id"]], row["operand_shape_index"])
        uses[values[row["value_id"]]].add((name, row["operand_number"], index))
    for value, number in zip(values, found.liveness.alias_set.tolist(), strict=True):
        sets[number].add(value)
    return plain_rules.Liveness(
        [names[row] for row in found.schedule.order.tolist()],
        set(values),
        {value for value, phi in zip(values, dataflow.is_phi.tolist(), strict=True) if phi},
        dict(positions),
        dict(uses),
        sorted(sets.values(), key=sorted),
        {
            values[row["value_id"]]: (row["start_time"], row["end_time"])
            for row in found.liveness.ranges_table().to_pylist()
        },
    )


@settings(max_examples=rounds(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_engine_and_plain_rules_agree(text: str):
    plain, ours = plain_rules.liveness(text), as_plain(derived(text))
    assert ours.schedule == plain.schedule
    assert ours.values == plain.values
    assert ours.phis == plain.phis
    assert ours.positions == plain.positions
    assert ours.uses == {value: found for value, found in plain.uses.items() if found}
    assert ours.alias_sets == sorted(plain.alias_sets, key=sorted)
    assert ours.live_ranges == plain.live_ranges


@settings(max_examples=rounds(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo())
def test_peaks_on_a_cpu_agree(text: str):
    hlo = read_hlo_text(split_lines(text.encode()))
    found = derive(hlo)
    estimated = estimate(hlo, found, platform="cpu")
    table = found.dataflow.values_table().to_pylist()
    names = found.program.names
    values = [position(str(names[row["instruction_id"]]), row["shape_index"]) for row in table]
    sizes = dict(zip(values, estimated.sizes.size.tolist(), strict=True))
    peaks = {row["memory_space"]: row["peak_bytes"] for row in estimated.peaks.to_pylist()}
    assert peaks.get(0, 0) == plain_placement.peak(text, sizes)[1]
