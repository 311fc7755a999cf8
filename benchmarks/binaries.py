"""Whether a module's `.hlo.pb` gives the same tables as its texts, table by table.

`.venv/bin/python benchmarks/binaries.py DUMPS…` reads each `.hlo.pb` that has its text beside
it, and the text's whole dump. It compares the rows of both as multisets, with the names of
instructions in the place of their ids, and prints how many rows differ. `--show` also prints the
first rows that differ in each table.
"""

import argparse
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from parts import find

from memhouse.ingest.join import Module, Told, join_parts, work_out
from memhouse.ingest.readers.hlo_proto import read_hlo_proto
from memhouse.ingest.readers.lines import use_quick_memory
from memhouse.ingest.sources.program import Key
from memhouse.xla.parts import Parts

# XLA's order of positions and uses depends on where its objects lie in memory.
_UNORDERED = ("position_index", "use_index")
# Numbers that memhouse gives in the order of computations, which XLA prints in another order;
# `.hlo.pb` has no names of memory spaces.
_NUMBERED = (("scopes", "scope_id"), ("memory_spaces", "space_name"))
_FEW = 3


def read_both(folder: Path) -> list[tuple[Key, Path, Module, Module]]:
    """The modules under a folder that are there as text and as `.hlo.pb`, both joined."""
    found = []
    for key, parts in find(folder):
        for binary in sorted(folder.rglob(f"{key.name}*after_optimizations.hlo.pb")):
            if binary.parent.relative_to(folder).as_posix() == key.workload:
                assert parts.buffer_assignment is not None
                found.append((key, binary, joined(parts, key), read_binary(binary, key)))
    return found


def read_binary(path: Path, key: Key) -> Module:
    """The module in a `.hlo.pb`."""
    return joined(read_hlo_proto(path.read_bytes()), key)


def joined(parts: Parts, key: Key) -> Module:
    """The module's rows, with all that can be worked out."""
    changelist = int(key.compiler) if key.compiler else None
    (found,) = work_out([Told(parts, key.platform, changelist)])
    return join_parts(found.parts, found.attribution, found.program)


def plain_rows(module: Module, table: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table without the numbers that only memhouse gives."""
    rows = module.tables.get(table)
    if rows is None:
        return Counter()
    names = module.tables["instructions"]["instruction"]
    columns: dict[str, list[Any]] = {}
    for name in sorted(rows.column_names):
        column = rows[name]
        if name in _UNORDERED or (table, name) in _NUMBERED:
            continue
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if name == "scope_id":
            column = _scopes(module, column)
        if name.endswith("instruction_id"):
            column = names.take(column.combine_chunks())
        columns[name] = column.to_pylist()
    return Counter(zip(*(map(repr, column) for column in columns.values()), strict=True))


def _scopes(module: Module, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The scopes that numbers stand for, as texts."""
    scopes = module.tables.get("scopes")
    if scopes is None:
        return ids
    texts = pc.binary_join_element_wise(
        *(scopes[name].cast(pa.string()) for name in ("scope", "operation")), "|"
    )
    return texts.take(pc.index_in(ids, value_set=scopes["scope_id"].combine_chunks()))


def main() -> None:
    """Compare the modules under the given folders, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    use_quick_memory()
    total: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    modules = 0
    for folder in arguments.dumps:
        for _, binary, text, read in read_both(folder):
            modules += 1
            for table in sorted({*text.tables, *read.tables}):
                left, right = plain_rows(text, table), plain_rows(read, table)
                total[table] += left.total()
                apart = max((left - right).total(), (right - left).total())
                differing[table] += apart
                if apart:
                    examples[table].append(f"{binary}: {apart}")
                    for sign, rows in (("text", left - right), ("pb", right - left)):
                        examples[table] += [f"  {sign} {row}" for row in list(rows)[:_FEW]]
            for name in sorted({*text.header, *read.header}):
                total["modules"] += 1
                if text.header.get(name) != read.header.get(name) and name != "origin":
                    differing[f"modules.{name}"] += 1
                    examples[f"modules.{name}"].append(
                        f"{binary}: {text.header.get(name)!r:.200} {read.header.get(name)!r:.200}"
                    )
    print(f"{modules} modules\n\n| table | rows | differing |\n| --- | --- | --- |")
    for table in sorted({*total, *differing}):
        print(f"| {table} | {total[table]:,} | {differing[table]:,} |")
    if arguments.show:
        for table, lines in examples.items():
            print(f"\n{table}")
            for line in lines[:24]:
                print(f"  {line[:600]}")


if __name__ == "__main__":
    main()
