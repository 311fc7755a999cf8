"""Compares liveness derived from HLO text with that in dumps: python liveness.py DUMPS.

Of every module that has both it compares the schedule, values, positions, uses and live ranges row
by row, and what is estimated from the text alone: sizes, occupancy and the peaks of the memory
spaces.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa

from memhouse.ingest.join import WorkedOut, join_parts
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.ingest.sources.program import Key
from memhouse.xla.columns.dataflow import TPU, platform_of, value_sizes
from memhouse.xla.columns.liveness import Derived, derive
from memhouse.xla.columns.parts import Parts
from memhouse.xla.errors import DumpError
from memhouse.xla.estimate import completed, value_rows

_TABLES = ("schedule", "values", "positions", "uses", "live_ranges")
_SIZES = ("instruction", "shape_index", "memory_space", "size_bytes", "logical_bytes", "shape")
_STEPS = ("memory_space", "start_time", "live_bytes", "occupied_bytes")
Row = tuple[object, ...]
Tables = dict[str, pa.Table]


def find(path: Path) -> Iterator[tuple[Key, Parts]]:
    """The modules under a path that have HLO text, before their parts are joined."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, lambda why: print(why, file=sys.stderr))
        for dump in find_dumps(files, lambda file, why: print(file.path, why, file=sys.stderr)):
            parts = dump.read(dump.fingerprint())
            if parts is not None and parts.hlo is not None:
                yield dump.key, parts


def dumped(parts: Parts) -> dict[str, set[Row]]:
    """The rows of each table as the dump has them, values by instruction and index."""
    found: dict[str, set[Row]] = {}
    if parts.live_range is not None:
        found["schedule"] = _rows(parts.live_range.schedule, "schedule_time", "instruction")
        found["live_ranges"] = _rows(
            parts.live_range.ranges, "instruction", "shape_index", "start_time", "end_time"
        )
    used = parts.used_values
    if used is not None:
        found["values"] = _rows(used.values, "instruction", "shape_index", "is_phi")
        names = _value_names(used.values, used.values["instruction"])
        found["positions"] = _of_values(names, used.positions, "instruction", "shape_index")
        found["uses"] = _of_values(
            names, used.uses, "instruction", "operand_number", "operand_shape_index"
        )
    return found


def worked_out(derived: Derived) -> dict[str, set[Row]]:
    """The rows of each table as worked out from the text."""
    names = derived.program.names

    def named(table: pa.Table) -> pa.Table:
        return table.append_column("instruction", names.take(table["instruction_id"]))

    dataflow = derived.dataflow
    values = named(dataflow.values_table())
    of_value = _value_names(values, values["instruction"])
    scheduled = names.take(pa.array(derived.schedule.order)).to_pylist()
    return {
        "schedule": set(enumerate(scheduled)),
        "values": _rows(values, "instruction", "shape_index", "is_phi"),
        "positions": _of_values(
            of_value, named(dataflow.positions_table()), "instruction", "shape_index"
        ),
        "uses": _of_values(
            of_value,
            named(dataflow.uses_table()),
            "instruction",
            "operand_number",
            "operand_shape_index",
        ),
        "live_ranges": {
            (*cast(Row, name), *times)
            for name, *times in _of_values(
                of_value, derived.liveness.ranges_table(), "start_time", "end_time"
            )
        },
    }


def _rows(table: pa.Table, *columns: str) -> set[Row]:
    return set(zip(*(table[column].to_pylist() for column in columns), strict=True))


def _value_names(values: pa.Table, instruction: pa.ChunkedArray) -> dict[int, Row]:
    names = zip(instruction.to_pylist(), values["shape_index"].to_pylist(), strict=True)
    return dict(zip(values["value_id"].to_pylist(), names, strict=True))


def _of_values(names: dict[int, Row], table: pa.Table, *columns: str) -> set[Row]:
    rows = zip(*(table[column].to_pylist() for column in ("value_id", *columns)), strict=True)
    return {(names[value], *rest) for value, *rest in rows}


def differing(theirs: set[Row], ours: set[Row], table: str, constants: set[str]) -> list[Row]:
    """The rows that are not in both. A constant may lack a live range in the dump."""
    missing, extra = theirs - ours, ours - theirs
    if table == "live_ranges":
        extra = {row for row in extra if row[0] not in constants}
    return sorted([*missing, *extra], key=str)


@dataclass
class Peak:
    """A memory space's peak in the dump, and as estimated from the text alone."""

    module: str
    platform: str
    space: int
    dumped: int
    estimated: int

    @property
    def error(self) -> float:
        """How far the estimate is off, as a part of the dumped peak."""
        return (self.estimated - self.dumped) / max(self.dumped, 1)


def peaks(name: str, platform: str, dumped: Tables, estimated: Tables) -> list[Peak]:
    """Both peaks of each memory space."""
    found = {
        row["memory_space"]: row["peak_bytes"] for row in estimated["module_memory"].to_pylist()
    }
    return [
        Peak(
            name, platform, row["memory_space"], row["peak_bytes"], found[row["memory_space"]] or 0
        )
        for row in dumped["module_memory"].to_pylist()
        if row["peak_bytes"] is not None
    ]


class Report:
    """Counts what was compared, and prints it."""

    def __init__(self) -> None:
        self.modules: Counter[str] = Counter()
        self.compared: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.peaks: list[Peak] = []
        self.slowest = (0.0, 0.0, "")

    def add(self, key: Key, parts: Parts) -> None:
        """Compare one module."""
        name = f"{key.workload}/{key.name}"
        assert parts.hlo is not None
        if not parts.hlo.header["is_scheduled"]:
            self.modules["not scheduled"] += 1
            return
        begin = time.perf_counter()
        try:
            changelist = int(key.compiler) if key.compiler else None
            derived = derive(parts.hlo, changelist=changelist, live_range=parts.live_range)
            between = time.perf_counter()
            alone, *_ = completed(Parts(hlo=parts.hlo), derived, platform=key.platform)
        except DumpError as error:
            self.modules["refused"] += 1
            print(f"{name}: {error}")
            return
        end = time.perf_counter()
        self.slowest = max(self.slowest, (between - begin, end - between, name))
        self.modules["compared"] += 1
        self._tables(name, parts, derived)
        if parts.buffer_assignment is not None:
            tables, estimated = (
                join_parts(WorkedOut.of(parts)).tables,
                join_parts(WorkedOut.of(alone)).tables,
            )
            platform = key.platform or platform_of(parts.hlo)
            sized = value_rows(derived.dataflow, value_sizes(derived.dataflow, platform))
            names = derived.program.names.take(sized["instruction_id"].combine_chunks())
            sized = sized.append_column("instruction", names)
            for table, theirs, ours, columns in (
                ("sizes", parts.buffer_assignment.values, sized, _SIZES),
                ("occupancy", tables["occupancy"], estimated["occupancy"], _STEPS),
            ):
                rows = _rows(theirs, *columns)
                self.compared[table] += len(rows)
                self.wrong[table] += len(rows - _rows(ours, *columns))
            self.peaks += peaks(name, platform, tables, estimated)

    def _tables(self, name: str, parts: Parts, derived: Derived) -> None:
        ours = worked_out(derived)
        is_constant = pa.array(derived.program.opcode.is_one_of("constant"))
        constants = set(derived.program.names.filter(is_constant).to_pylist())
        for table, rows in dumped(parts).items():
            differ = differing(rows, ours[table], table, constants)
            self.compared[table] += len(rows)
            self.wrong[table] += len(differ)
            for row in differ[:3]:
                print(f"{name}: {table}: {row}")

    def show(self, *, every: bool) -> None:
        """Print the tables; with `every`, the peaks of all modules and not only what differs."""
        print(", ".join(f"{count} modules {what}" for what, count in self.modules.items()))
        exact, estimate_, name = self.slowest
        print(f"the slowest: {exact:.3f} s, and {estimate_:.3f} s for the estimate: {name}")
        print("\n| table | rows compared | rows that differ |\n| --- | --- | --- |")
        for table in (*_TABLES, "sizes", "occupancy"):
            print(f"| {table} | {self.compared[table]:,} | {self.wrong[table]:,} |")
        print("\n| platform, space | peaks | equal | within the limit | worst |")
        print("| --- | --- | --- | --- | --- |")
        for group in sorted({_group(peak) for peak in self.peaks}):
            found = [peak for peak in self.peaks if _group(peak) == group]
            equal = sum(peak.error == 0 for peak in found)
            within = sum(abs(peak.error) <= _limit(peak) for peak in found)
            worst = max((peak.error for peak in found), key=abs)
            print(f"| {group} | {len(found)} | {equal} | {within} | {worst:+.4%} |")
        print("\n| module | space | dumped | estimated | off |\n| --- | --- | --- | --- | --- |")
        for peak in self.peaks:
            if every or peak.error:
                print(
                    f"| {peak.module} | {peak.space} | {peak.dumped:,} | {peak.estimated:,} "
                    f"| {peak.error:+.4%} |"
                )


def _group(peak: Peak) -> str:
    space = {0: "HBM", 1: "VMEM"}.get(peak.space, "others") if peak.platform == TPU else "memory"
    return f"{peak.platform} {space}"


def _limit(peak: Peak) -> float:
    return 0.05 if peak.platform == TPU and peak.space == 1 else 0.01


def main() -> None:
    """Compare all modules under the given paths and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path, nargs="+")
    parser.add_argument("--all", action="store_true", help="print every peak")
    options = parser.parse_args()
    report = Report()
    for path in options.dumps:
        for key, parts in find(path):
            report.add(key, parts)
    report.show(every=options.all)


if __name__ == "__main__":
    main()
