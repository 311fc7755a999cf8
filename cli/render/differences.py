"""What `memhouse diff` shows: modules with their causes, metrics and buffers."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...queries.cells import human_bytes, one_line
from ...queries.diff import Diff, ModuleDiff
from ...queries.diff_causes import Dump
from ..options import Format
from .json import print_json
from .rows import print_rows
from .text import print_text

# What a person wants to see of a buffer, in order.
_BUFFER_COLUMNS = ("change_bytes", "what", "category", "value", "source", "op_name", "shape")


def print_diff(diff: Diff, space: int, limit: int, output: Format) -> None:
    """Print a diff. csv and json have all buffers, of all memory spaces."""
    match output:
        case Format.json:
            print_json([_as_object(module) for module in diff.modules])
        case Format.csv:
            print_rows(diff.rows, output)
        case _:
            for module in diff.modules:
                _print_module(module, space, limit, output)


def _print_module(module: ModuleDiff, space: int, limit: int, output: Format) -> None:
    heading = "## " if output is Format.markdown else ""
    if module.is_same:
        print_text(one_line(f"{heading}{module.name}: the same"))
        return
    print_text(one_line(f"{heading}{module.name}: {'; '.join(module.causes)}"))
    flags = module.flags.arrow().to_pylist()
    for flag in flags[:limit]:
        print_text(one_line(f"- {flag['flag']}: {flag['a_value']} → {flag['b_value']}"))
    if len(flags) > limit:
        print_text(f"- … and {len(flags) - limit} more flags")
    if len(module.metrics):
        print_text("")
        print_rows(_metrics(module, space), output)
    rows = module.rows.arrow()
    buffers = rows.filter(pc.equal(rows["memory_space"], space))
    if len(buffers):
        change = pc.sum(buffers["change_bytes"]).as_py()
        print_text(f"\nThe peak changes by {human_bytes(change)}:\n")
        print_rows(_buffers(buffers, limit), output)
    print_text("")


def _buffers(buffers: pa.Table, limit: int) -> pa.Table:
    """The largest changes, and the sum of those that are left out."""
    columns = buffers.select(_BUFFER_COLUMNS)
    rest = columns.slice(limit)
    if not len(rest):
        return columns
    change = pc.sum(rest["change_bytes"]).as_py()
    last = {"change_bytes": change, "what": f"{len(rest)} smaller"}
    return pa.concat_tables(
        [columns.slice(0, limit), pa.Table.from_pylist([last], schema=columns.schema)]
    )


def _metrics(module: ModuleDiff, space: int) -> pa.Table:
    """The metrics of one memory space, A and B side by side."""
    rows = [
        {
            "figure": row["metric"].removesuffix("_bytes"),
            "A_bytes": row["a_bytes"],
            "B_bytes": row["b_bytes"],
            "change_bytes": row["change_bytes"],
            "change_pct": 100 * row["change_bytes"] / row["a_bytes"] if row["a_bytes"] else None,
        }
        for row in module.metrics.arrow().to_pylist()
        if row["memory_space"] == space
    ]
    schema = pa.schema(
        [("figure", pa.string())]
        + [(f"{name}_bytes", pa.int64()) for name in ("A", "B", "change")]
        + [("change_pct", pa.float64())]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _as_object(module: ModuleDiff) -> dict[str, Any]:
    def run(dump: Dump | None) -> str | None:
        return None if dump is None else dump.run_id

    return {
        "module": module.name,
        "a_run": run(module.a),
        "b_run": run(module.b),
        "same": module.is_same,
        "causes": module.causes,
        "flags": module.flags.arrow().to_pylist(),
        "figures": [_figure(row) for row in module.metrics.arrow().to_pylist()],
        "buffers": module.rows.arrow().to_pylist(),
    }


def _figure(row: dict[str, Any]) -> dict[str, Any]:
    """A metric by the name that it has on the command line."""
    return {"figure" if name == "metric" else name: value for name, value in row.items()}
