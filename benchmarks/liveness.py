"""Compares liveness derived from HLO text with that in dumps: python liveness.py DUMPS.

Of every module that has both it compares the schedule, values, positions, uses and live ranges row
by row, and estimates from the text alone: sizes, occupancy and the peaks of the memory spaces.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from memhouse.ingest.derive import Derivation, Notes
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.ingest.sources.program import Key
from memhouse.xla.analysis import Analysis
from memhouse.xla.complete import fill_missing_parts
from memhouse.xla.errors import DumpError
from memhouse.xla.liveness import analyse
from memhouse.xla.parts import Parts
from memhouse.xla.program import NONE
from memhouse.xla.sizes import TPU, platform_of, value_sizes

_TABLES = ("schedule", "values", "positions", "uses", "live_ranges", "sizes", "occupancy")
Row = tuple[object, ...]
Rows = dict[str, set[Row]]


def find_modules(path: Path) -> Iterator[tuple[Key, Parts]]:
    """The modules under a path that have HLO text."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, lambda why: print(why, file=sys.stderr))
        for dump in find_dumps(files, lambda file, why: print(file.path, why, file=sys.stderr)):
            parts = dump.read(dump.fingerprint())
            if parts is not None and parts.program is not None:
                yield dump.key, parts


def dumped_rows(parts: Parts) -> Rows:
    """The rows by table as the dump has them; a value is its instruction and index."""
    rows: Rows = {}
    lives, used = parts.live_ranges, parts.used_values
    if lives is not None:
        rows["schedule"] = set(enumerate(lives.schedule))
        rows["live_ranges"] = {tuple(live_range) for live_range in lives.ranges}
    if used is not None:
        rows["values"] = {(v.instruction, v.shape_index, v.is_phi) for v in used.values}
        names = {v.value_id: (v.instruction, v.shape_index) for v in used.values}
        rows["positions"] = {
            (*names[p.value_id], p.instruction, p.shape_index) for p in used.positions
        }
        rows["uses"] = {
            (*names[u.value_id], u.instruction, u.operand_number, u.operand_shape_index)
            for u in used.uses
        }
    return rows


def derived_rows(analysis: Analysis) -> Rows:
    """The rows by table as derived from the text."""
    program, flow, lives = analysis.program, analysis.flow, analysis.liveness
    slots, names = flow.slots, program.names

    def position(slot: int) -> Row:
        return names[slots.row[slot]], slots.index_text(slot)

    values = [position(slot) for slot in flow.defined_at]
    uses = zip(flow.use_value, flow.use_row, flow.use_operand, flow.use_slot, strict=True)
    return {
        "schedule": set(enumerate(names[row] for row in analysis.schedule.order)),
        "values": {(*v, is_phi) for v, is_phi in zip(values, flow.is_phi, strict=True)},
        "positions": {
            (*values[value], *position(slot))
            for slot, value in enumerate(flow.value)
            if value != NONE
        },
        "uses": {
            (*values[value], names[row], number, slots.index_text(slot))
            for value, row, number, slot in uses
        },
        "live_ranges": {
            (*v, start, end)
            for v, start, end in zip(values, lives.start, lives.end, strict=True)
            if start != NONE
        },
    }


def dumped_sizes(parts: Parts) -> set[Row]:
    """The size of each value, and its shape if it is an array."""
    assert parts.assignment is not None
    return {
        (
            *(v.instruction, v.shape_index, v.memory_space, v.size_bytes),
            None if v.shape is None or v.shape.startswith("(") else v.shape,
        )
        for v in parts.assignment.values
    }


def derived_sizes(analysis: Analysis, platform: str) -> set[Row]:
    """The same as derived from the text."""
    flow, names = analysis.flow, analysis.program.names
    slots, sizes = flow.slots, value_sizes(flow, platform)
    rows: set[Row] = set()
    for value, slot in enumerate(flow.defined_at):
        array = slots.array(slot)
        name, size = names[slots.row[slot]], sizes.size_bytes[value]
        shape = None if array is None else str(array)
        rows.add((name, slots.index_text(slot), sizes.memory_space[value], size, shape))
    return rows


def occupancy_and_peaks(parts: Parts) -> tuple[set[Row], dict[int, int]]:
    """The rows of `occupancy`, and the peak by memory space in bytes."""
    tables = build_module(Derivation(parts, Notes())).tables
    steps = tables["occupancy"].to_pylist() if "occupancy" in tables else []
    columns = ("memory_space", "start_time", "live_bytes", "occupied_bytes")
    peaks = {
        row["memory_space"]: row["peak_bytes"]
        for row in tables["module_memory"].to_pylist()
        if row["peak_bytes"] is not None
    }
    return {tuple(step[column] for column in columns) for step in steps}, peaks


@dataclass
class Peak:
    """A memory space's peak in the dump, and as estimated from the text alone, in bytes."""

    module: str
    platform: str
    space: int
    dumped: int
    estimated: int

    @property
    def error(self) -> float:
        """The error of the estimate, relative to the dumped peak."""
        return (self.estimated - self.dumped) / max(self.dumped, 1)

    @property
    def group(self) -> str:
        """The platform and the kind of memory."""
        space = "memory"
        if self.platform == TPU:
            space = {0: "HBM", 1: "VMEM"}.get(self.space, "others")
        return f"{self.platform} {space}"

    @property
    def is_within_limit(self) -> bool:
        """Whether the error is small enough."""
        return abs(self.error) <= (0.05 if self.group == "tpu VMEM" else 0.01)


class Report:
    """Counts of the rows that were compared and that differ."""

    def __init__(self) -> None:
        self.modules: Counter[str] = Counter()
        self.compared: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()
        self.peaks: list[Peak] = []
        self.slowest = (0.0, 0.0, "")

    def add(self, key: Key, parts: Parts) -> None:
        """Compare one module."""
        name, program = f"{key.workload}/{key.name}", parts.program
        assert program is not None
        if not program.header.is_scheduled:
            self.modules["not scheduled"] += 1
            return
        begin = time.perf_counter()
        try:
            changelist = int(key.compiler) if key.compiler else None
            dumped = parts.live_ranges.ranges if parts.live_ranges is not None else None
            analysis = analyse(program, changelist, dumped)
            between = time.perf_counter()
            alone, *_ = fill_missing_parts(Parts(program=program), analysis, key.platform)
        except DumpError as error:
            self.modules["refused"] += 1
            print(f"{name}: {error}")
            return
        durations = (between - begin, time.perf_counter() - between)
        self.slowest = max(self.slowest, (*durations, name))
        self.modules["compared"] += 1
        self._compare_rows(name, parts, analysis)
        if parts.assignment is not None:
            platform = key.platform or platform_of(program)
            steps, peaks = occupancy_and_peaks(parts)
            estimated_steps, estimated_peaks = occupancy_and_peaks(alone)
            self._count("occupancy", steps, estimated_steps)
            self._count("sizes", dumped_sizes(parts), derived_sizes(analysis, platform))
            for space, peak in peaks.items():
                estimate = estimated_peaks.get(space, 0)
                self.peaks.append(Peak(name, platform, space, peak, estimate))

    def _count(self, table: str, dumped: set[Row], derived: set[Row]) -> None:
        self.compared[table] += len(dumped)
        self.differing[table] += len(dumped - derived)

    def _compare_rows(self, name: str, parts: Parts, analysis: Analysis) -> None:
        program, derived = analysis.program, derived_rows(analysis)
        constants = {program.names[row] for row in program.rows_with("constant")}
        for table, rows in dumped_rows(parts).items():
            extra = derived[table] - rows
            if table == "live_ranges":
                # A constant may lack a live range in the dump.
                extra = {row for row in extra if row[0] not in constants}
            differing = sorted([*(rows - derived[table]), *extra], key=str)
            self.compared[table] += len(rows)
            self.differing[table] += len(differing)
            for row in differing[:3]:
                print(f"{name}: {table}: {row}")

    def show(self, *, shows_all: bool) -> None:
        """Print the counts and the peaks that differ, or all peaks."""
        print(", ".join(f"{count} modules {state}" for state, count in self.modules.items()))
        analysis, estimate, name = self.slowest
        print(f"the slowest: {analysis:.3f} s, and {estimate:.3f} s for the estimate: {name}")
        print("\n| table | rows compared | rows that differ |\n| --- | --- | --- |")
        for table in _TABLES:
            print(f"| {table} | {self.compared[table]:,} | {self.differing[table]:,} |")
        print("\n| platform, space | peaks | equal | within the limit | worst |")
        print("| --- | --- | --- | --- | --- |")
        for group in sorted({peak.group for peak in self.peaks}):
            peaks = [peak for peak in self.peaks if peak.group == group]
            n_equal = sum(peak.error == 0 for peak in peaks)
            n_within = sum(peak.is_within_limit for peak in peaks)
            worst = max((peak.error for peak in peaks), key=abs)
            print(f"| {group} | {len(peaks)} | {n_equal} | {n_within} | {worst:+.4%} |")
        print("\n| module | space | dumped | estimated | error |\n| --- | --- | --- | --- | --- |")
        for peak in self.peaks:
            if shows_all or peak.error:
                print(
                    f"| {peak.module} | {peak.space} | {peak.dumped:,} | {peak.estimated:,} "
                    f"| {peak.error:+.4%} |"
                )


def main() -> None:
    """Compare all modules under the given paths and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path, nargs="+")
    parser.add_argument("--all", action="store_true", help="print every peak")
    options = parser.parse_args()
    report = Report()
    for path in options.dumps:
        for key, parts in find_modules(path):
            report.add(key, parts)
    report.show(shows_all=options.all)


if __name__ == "__main__":
    main()
