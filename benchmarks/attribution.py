"""Whose the peak is, module by module and rule by rule, and how long it takes to find out.

`.venv/bin/python benchmarks/attribution.py DUMPS` prints the share of each module's peak in
memory space 0 that each rule of `values.origin_rule` finds, and the share of each pass. With
`--truth FILE` it also looks up the buffers of a file whose owners were read from HLO text by
hand: a list of dump (its folder, as the end of a path), module, instruction, shape_index,
expected (file:line or an argument's name) and expected_pass.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path, PurePosixPath
from typing import Any

from parts import find

import memhouse
from memhouse.ingest.readers.lines import use_quick_memory
from memhouse.xla.attribution import attribute
from memhouse.xla.errors import DumpError
from memhouse.xla.liveness import derive
from memhouse.xla.origins import RULES

_PASSES = ("argument", "forward", "backward", "rematerialised", "optimizer", "other")
_PEAKS = """
    SELECT
        module_id,
        COALESCE({column}, CASE category WHEN 'constant' THEN 'constant' ELSE 'none' END) AS name,
        SUM(share) AS share
    FROM _module_peak_buffers
    WHERE memory_space = 0
    GROUP BY 1, 2
"""
_MODULES = """
    SELECT
        dumps.module_id,
        MIN(dumps.run_id || '/' || dumps.workload) AS workload,
        MIN(dumps.module_name) AS module_name,
        MIN(module_memory.peak_bytes) AS peak_bytes
    FROM dumps
    INNER JOIN module_memory USING (module_id)
    WHERE module_memory.memory_space = 0
        AND module_id IN (SELECT module_id FROM instructions WHERE op_name IS NOT NULL)
        AND module_id IN (SELECT module_id FROM computations)
    GROUP BY dumps.module_id
    ORDER BY peak_bytes DESC
"""
_OWNERS = """
    SELECT
        dumps.run_id || '/' || dumps.workload AS workload,
        dumps.module_name AS module,
        made.instruction,
        "values".shape_index,
        CASE
            WHEN origins.source_line IS NULL THEN origins.op_name
            ELSE REGEXP_EXTRACT(origins.source_file, '[^/]*$') || ':' || origins.source_line
        END AS owner,
        "values".pass
    FROM "values"
    INNER JOIN dumps USING (module_id)
    INNER JOIN instructions AS made
        ON made.module_id = "values".module_id
            AND made.instruction_id = "values".instruction_id
    LEFT JOIN instructions AS origins
        ON origins.module_id = "values".module_id
            AND origins.instruction_id = "values".origin_instruction_id
    WHERE made.instruction IN (SELECT UNNEST($1))
"""


def shares(warehouse: memhouse.Warehouse, column: str, names: tuple[str, ...]) -> None:
    """Print a table: a row for each module, with the shares of its peak in percent."""
    found: dict[int, dict[str, float]] = {}
    for row in warehouse.sql(_PEAKS.format(column=column)).arrow().to_pylist():
        found.setdefault(row["module_id"], {})[row["name"]] = row["share"]
    columns = (*names, "constant", "none")
    print(f"\n| module | peak | {' | '.join(columns)} |")
    print(f"| --- | --- |{' --- |' * len(columns)}")
    for module in warehouse.sql(_MODULES).arrow().to_pylist():
        of = found.get(module["module_id"], {})
        cells = " | ".join(f"{of.get(name, 0):.2%}" for name in columns)
        name = f"{module['workload']} {module['module_name']}"
        print(f"| {name} | {module['peak_bytes'] / 2**20:.2f} MiB | {cells} |")


def times(path: Path) -> None:
    """Print how long the slowest module takes, of five times the shortest."""
    slowest = (0.0, "", 0)
    for key, parts in find(path):
        assert parts.hlo is not None
        try:
            derived = derive(parts.hlo)
        except DumpError:
            continue
        taken = []
        for _ in range(5):
            begin = time.perf_counter()
            attribute(parts.hlo, derived)
            taken.append(time.perf_counter() - begin)
        slowest = max(slowest, (min(taken), f"{key.workload}/{key.name}", len(derived.program)))
    seconds, name, instructions = slowest
    print(f"\nthe slowest: {seconds:.3f} s for {instructions} instructions: {name}")


def truth(warehouse: memhouse.Warehouse, path: Path) -> None:
    """Print how many of the buffers that were read by hand are right, and those that are not."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    named = [sorted({row["instruction"] for row in rows})]
    owners = warehouse.sql(_OWNERS, named).arrow().to_pylist()
    count = right = 0
    for row in rows:
        same = [
            owner
            for owner in owners
            if _same_end(row["dump"], owner["workload"])
            and all(owner[name] == row[name] for name in ("module", "instruction", "shape_index"))
        ]
        count += bool(same)
        if any((row["expected"], row["expected_pass"]) == (o["owner"], o["pass"]) for o in same):
            right += 1
        elif same:
            print(f"{row['dump']} {row['instruction']}{row['shape_index']}: {same[0]}")
    print(f"\nread by hand: {right} of {count} right, {len(rows) - count} not in these dumps")


def _same_end(path: str, other: str) -> bool:
    """Whether the shorter of two paths is the end of the other."""
    a, b = PurePosixPath(path).parts, PurePosixPath(other).parts
    shared = min(len(a), len(b))
    return a[-shared:] == b[-shared:]


def main() -> None:
    """Ingest the dumps into a warehouse of their own and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path, nargs="+")
    parser.add_argument("--truth", type=Path)
    given = parser.parse_args()
    use_quick_memory()
    with (
        tempfile.TemporaryDirectory() as folder,
        memhouse.open(f"{folder}/memhouse.duckdb") as warehouse,
    ):
        for path in given.dumps:
            warehouse.ingest(path, run=path.resolve().name)
        shares(warehouse, "origin_rule", RULES)
        shares(warehouse, "pass", _PASSES)
        if given.truth is not None:
            truth(warehouse, given.truth)
    for path in given.dumps:
        times(path)


if __name__ == "__main__":
    main()
