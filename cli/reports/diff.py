"""Shows what differs between two runs or modules, and why."""

from typing import Any

import pyarrow as pa
import sqlalchemy as sa
import typer

from ...queries.catalogue import command_query
from ...queries.diff import ModuleDiff, diff_dumps, diff_runs
from ...schema.stores.duckdb import fetch
from ..options import Format
from ..render.human import human_bytes, one_line
from ..render.output import print_json, print_rows, print_text
from ..warehouse import reading
from .find import find_dump

# What a person wants to see of a buffer, in order.
_BUFFER_COLUMNS = ("change_bytes", "what", "category", "value", "source", "op_name", "shape")


def show_diff(
    db: str, a: str, b: str, workload: str | None, space: int, limit: int, output: Format
) -> None:
    """Show what differs from A to B, two runs or two modules."""
    with reading(db) as connection:
        diffs = _diffs(connection, a, b, workload)
        no_buffers = fetch(connection, command_query("diff_buffers"), [-1, -1, space])
    match output:
        case Format.json:
            print_json([_plain(d) for d in diffs])
        case Format.csv:
            print_rows(_all_buffers(diffs, no_buffers.schema), output)
        case _:
            for module in diffs:
                _print_module(module, a, b, space, limit, output)


def _diffs(connection: sa.Connection, a: str, b: str, workload: str | None) -> list[ModuleDiff]:
    runs = set(fetch(connection, command_query("run_names"))["run_id"].to_pylist())
    if {a, b} <= runs:
        return diff_runs(connection, a, b, workload)
    if workload is not None:
        raise typer.BadParameter("it goes with two runs", param_hint="--workload")
    for name, other in ((a, b), (b, a)):
        if name in runs:
            raise typer.BadParameter(
                f"{name} is a run and {other} is none: give two runs, or two modules"
            )
    return [diff_dumps(connection, find_dump(connection, a), find_dump(connection, b))]


def _print_module(
    module: ModuleDiff, a: str, b: str, space: int, limit: int, output: Format
) -> None:
    heading = "## " if output is Format.markdown else ""
    if module.is_same:
        print_text(one_line(f"{heading}{module.name}: the same"))
        return
    print_text(one_line(f"{heading}{module.name}: {'; '.join(module.causes)}"))
    for flag in module.flags[:limit]:
        print_text(one_line(f"- {flag['flag']}: {flag['a_value']} → {flag['b_value']}"))
    if len(module.flags) > limit:
        print_text(f"- … and {len(module.flags) - limit} more flags")
    if module.figures:
        print_text("")
        print_rows(_figures(module, space), output)
    buffers = module.buffers.get(space, [])
    if buffers:
        change = sum(row["change_bytes"] for row in buffers)
        print_text(f"\nThe peak changes by {human_bytes(change)}:\n")
        rows = [{name: row[name] for name in _BUFFER_COLUMNS} for row in buffers[:limit]]
        rest = buffers[limit:]
        if rest:
            rest_bytes = sum(row["change_bytes"] for row in rest)
            rows.append(
                dict.fromkeys(_BUFFER_COLUMNS)
                | {"change_bytes": rest_bytes, "what": f"{len(rest)} smaller"}
            )
        print_rows(pa.Table.from_pylist(rows), output)
    print_text("")


def _figures(module: ModuleDiff, space: int) -> pa.Table:
    """The figures of one memory space, A and B side by side."""
    rows = [
        {
            "figure": row["figure"].removesuffix("_bytes"),
            "A_bytes": row["a_bytes"],
            "B_bytes": row["b_bytes"],
            "change_bytes": row["change_bytes"],
            "change_pct": 100 * row["change_bytes"] / row["a_bytes"] if row["a_bytes"] else None,
        }
        for row in module.figures
        if row["memory_space"] == space
    ]
    schema = pa.schema(
        [("figure", pa.string())]
        + [(f"{name}_bytes", pa.int64()) for name in ("A", "B", "change")]
        + [("change_pct", pa.float64())]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _all_buffers(diffs: list[ModuleDiff], columns: pa.Schema) -> pa.Table:
    """The buffers of all modules and memory spaces, a row each."""
    rows = [
        {"module": module.name, "memory_space": space, **row}
        for module in diffs
        for space, buffers in module.buffers.items()
        for row in buffers
    ]
    named = [pa.field("module", pa.string()), pa.field("memory_space", pa.int32())]
    return pa.Table.from_pylist(rows, schema=pa.schema([*named, *columns]))


def _plain(module: ModuleDiff) -> dict[str, Any]:
    def run(row: dict[str, Any] | None) -> str | None:
        return None if row is None else str(row["run_id"])

    return {
        "module": module.name,
        "a_run": run(module.a),
        "b_run": run(module.b),
        "same": module.is_same,
        "causes": module.causes,
        "flags": module.flags,
        "figures": module.figures,
        "buffers": [
            {"memory_space": space, **row}
            for space, buffers in module.buffers.items()
            for row in buffers
        ],
    }
