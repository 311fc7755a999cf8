"""The engine, its rules written again in plain Python, and XLA: all three agree."""

import gzip
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings

from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.columns.bridge_h import read_hlo_text
from memhouse.xla.columns.liveness import Derived, derive
from memhouse.xla.estimate import estimate

from ...support.dumps import DUMPS, copy_dump
from ...support.rounds import rounds
from . import against_dumps, placement_against_dumps, plain_placement, plain_rules
from .random_programs import scheduled_hlo
from .texts import figures

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
def test_random_programs_have_the_same_lives_and_peaks(text: str):
    hlo = read_hlo_text(split_lines(text.encode()))
    found = derive(hlo)
    plain, ours = plain_rules.liveness(text), as_plain(found)
    assert ours.schedule == plain.schedule
    assert ours.values == plain.values
    assert ours.phis == plain.phis
    assert ours.positions == plain.positions
    assert ours.uses == {value: places for value, places in plain.uses.items() if places}
    assert ours.alias_sets == sorted(plain.alias_sets, key=sorted)
    assert ours.live_ranges == plain.live_ranges
    estimated = estimate(hlo, found, platform="cpu")
    table = found.dataflow.values_table().to_pylist()
    names = found.program.names
    values = [position(str(names[row["instruction_id"]]), row["shape_index"]) for row in table]
    sizes = dict(zip(values, estimated.sizes.size.tolist(), strict=True))
    peaks = {row["memory_space"]: row["peak_bytes"] for row in figures(text, "cpu")}
    assert peaks.get(0, 0) == plain_placement.peak(text, sizes)[1]
