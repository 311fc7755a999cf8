"""Liveness worked out from HLO text, held against what the dumps themselves say.

`.venv/bin/python benchmarks/liveness.py DUMPS` compares every module that has both: the
schedule, values, positions, uses and live ranges to the row.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from memhouse.ingest import kinds
from memhouse.ingest.buffer_assignment import read_buffer_assignment
from memhouse.ingest.discover import Dump, find_dumps, is_wanted
from memhouse.ingest.hlo_text import read_hlo_text
from memhouse.ingest.lines import DumpError, split_lines, use_quick_memory
from memhouse.ingest.live_range import read_live_range
from memhouse.ingest.model.derived import Derived, derive
from memhouse.ingest.module import Parts
from memhouse.ingest.sections import (
    BUFFER_ASSIGNMENT,
    LIVE_RANGE,
    USED_VALUES,
    split_sections,
)
from memhouse.ingest.sources import open_source
from memhouse.ingest.used_values import read_used_values

_TABLES = ("schedule", "values", "positions", "uses", "live_ranges")
Row = tuple[object, ...]


def find(path: Path) -> Iterator[tuple[str, Parts]]:
    """The modules under a path that have HLO text, with what their files say."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, lambda why: print(why, file=sys.stderr))
        dumps = find_dumps(files, lambda file, why: print(file.path, why, file=sys.stderr))
        for dump in dumps:
            if kinds.HLO in dump.files or kinds.OOM_HLO in dump.files:
                yield f"{dump.workload}/{dump.stem}", _read(dump)


def _read(dump: Dump) -> Parts:
    parts = Parts()
    kind = kinds.HLO if kinds.HLO in dump.files else kinds.OOM_HLO
    parts.hlo = read_hlo_text(split_lines(dump.files[kind].read()))
    for kind in kinds.ASSIGNMENT_KINDS:
        if kind not in dump.files:
            continue
        for part, section in split_sections(split_lines(dump.files[kind].read())).items():
            if part == BUFFER_ASSIGNMENT:
                parts.buffer_assignment = read_buffer_assignment(section)
            elif part == USED_VALUES:
                parts.used_values = read_used_values(section, definitions=False)
            elif part == LIVE_RANGE:
                parts.live_range = read_live_range(section)
    return parts


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
            (*name, *times)
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


def main() -> None:
    """Compare all modules under the given paths and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path, nargs="+")
    options = parser.parse_args()
    use_quick_memory()
    compared: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    slowest = (0.0, "")
    for path in options.dumps:
        for name, parts in find(path):
            assert parts.hlo is not None
            if not parts.hlo.header["is_scheduled"]:
                modules["not scheduled"] += 1
                continue
            begin = time.perf_counter()
            try:
                derived = derive(parts.hlo)
            except DumpError as error:
                modules["refused"] += 1
                print(f"{name}: {error}")
                continue
            slowest = max(slowest, (time.perf_counter() - begin, name))
            modules["compared"] += 1
            theirs, ours = dumped(parts), worked_out(derived)
            constants = derived.program.names.filter(
                pa.array(derived.program.opcode.is_one_of("constant"))
            )
            for table, rows in theirs.items():
                differ = differing(rows, ours[table], table, set(constants.to_pylist()))
                compared[table] += len(rows)
                wrong[table] += len(differ)
                for row in differ[:3]:
                    print(f"{name}: {table}: {row}")
    print(", ".join(f"{count} modules {what}" for what, count in modules.items()))
    print(f"the slowest took {slowest[0]:.3f} s: {slowest[1]}")
    print("\n| table | rows compared | rows that differ |\n| --- | --- | --- |")
    for table in _TABLES:
        print(f"| {table} | {compared[table]:,} | {wrong[table]:,} |")


if __name__ == "__main__":
    main()
