"""Output of `memhouse diff`: modules with their causes, metrics, and buffers or owners."""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...queries.diff import (
    BUFFER,
    UNSET,
    Diff,
    Dump,
    ModuleDiff,
    compared_figures,
    summed_changes,
    with_sides,
)
from ...schema.readable import human_bytes, one_line
from .text import Format, print_json, print_prose, print_rows, print_text

# Columns of buffers; --wide, csv and json have all.
_BUFFER_COLUMNS = (
    *("change_bytes", "what", "shape", "source", "operation", "pass", "category", "value"),
    "is_guess",
)
# Changes below this share of the total are summed.
_MIN_SHARE = 0.001
_SHAPE = re.compile(r"(\w+)\[([^]]*)\]")


def print_diff(
    diff: Diff, space: int, limit: int, output: Format, *, wide: bool, show_all: bool
) -> None:
    """Print a diff; unless `show_all`, only count auxiliary programs and many unchanged modules.

    csv and json have all changes, of all memory spaces.
    """
    match output:
        case "json":
            print_json([_as_object(module, diff.by) for module in diff.modules])
        case "csv":
            print_rows(diff.rows, output)
        case _:
            for sentence in () if show_all else diff.sentences():
                _print_heading(sentence, output)
            for module in diff.modules if show_all else diff.listed():
                if module.is_same:
                    _print_heading(f"{module.name}: {module.said}", output)
                else:
                    _print_module(module, diff.by, space, None if wide else limit, output)


def _print_heading(text: str, output: Format) -> None:
    if output == "markdown":
        print_text(one_line(f"## {text}"))
    else:
        print_prose(one_line(text))


def _print_module(
    module: ModuleDiff, by: str, space: int, limit: int | None, output: Format
) -> None:
    """Print a module; without a limit, all changes with all columns."""
    _print_causes(module, output)
    flags = module.flags.arrow().to_pylist()
    for flag in flags[:limit]:
        a, b = (UNSET if flag[side] is None else flag[side] for side in ("a_value", "b_value"))
        print_text(one_line(f"- {flag['flag']}: {a} → {b}"))
    if limit is not None and len(flags) > limit:
        print_text(f"- … and {len(flags) - limit} more flags")
    if len(module.metrics):
        print_text("")
        figures = compared_figures(module)
        figures = figures.filter(pc.equal(figures["memory_space"], space))
        print_rows(figures.drop_columns(["memory_space"]), output)
    rows = module.rows.arrow()
    changes = rows.filter(pc.equal(rows["memory_space"], space)).drop_columns(["memory_space"])
    if len(changes):
        change = human_bytes(pc.sum(changes["change_bytes"]).as_py())
        grouping = "" if by == BUFFER else f", by {by}"
        print_text(f"\nThe peak changes by {change}{grouping}:\n")
        table = _buffers(changes, limit) if by == BUFFER else _groups(changes, limit)
        print_rows(table, output, wide=limit is None)
    print_text("")


def _print_causes(module: ModuleDiff, output: Format) -> None:
    """Print the module's cause as a heading, and the ledger of causes if there are several."""
    _print_heading(f"{module.name}: {module.cause}", output)
    if len(module.causes) > 1:
        print_text("")
        print_rows(module.causes.arrow().select(["change_bytes", "term", "source"]), output)


def _buffers(changes: pa.Table, limit: int | None) -> pa.Table:
    """The largest changes of buffers, and the sums of the others; columns as _BUFFER_COLUMNS."""
    rows, others = _split_largest(changes, limit)
    for row in rows:
        row["shape"] = _short_shape(row["shape"])
    if limit is None:
        return with_sides(pa.Table.from_pylist(rows, schema=changes.schema))
    for row in rows:
        if (row["residuals"] or 0) > 1:
            row["shape"] += f" +{row['residuals'] - 1} more"
        if not row["source"]:
            row["source"] = row["op_name"]
    schema = pa.schema([changes.schema.field(name) for name in _BUFFER_COLUMNS])
    return pa.Table.from_pylist([*rows, *summed_changes(others)], schema=schema)


def _groups(changes: pa.Table, limit: int | None) -> pa.Table:
    """The largest changes of owners, and the sums of the others."""
    rows, others = _split_largest(changes, limit)
    rows += summed_changes(others)
    return with_sides(pa.Table.from_pylist(rows, schema=changes.schema))


def _split_largest(
    changes: pa.Table, limit: int | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split changes into the rows to show and those to sum: beyond the limit, or very small."""
    rows = changes.to_pylist()
    if limit is None:
        return rows, []
    min_bytes = _MIN_SHARE * sum(abs(row["change_bytes"]) for row in rows)
    largest = [row for row in rows[:limit] if abs(row["change_bytes"]) >= min_bytes]
    # A sum of one row would save no line.
    if len(rows) == len(largest) + 1:
        return rows, []
    return largest, rows[len(largest) :]


def _short_shape(shape: str) -> str:
    """Abbreviate `bf16[8,512] → bf16[16,512]` to `bf16[8→16,512]`, a tuple to `(3 arrays)`."""
    arrays = _SHAPE.findall(shape)
    if shape.startswith("("):
        return f"({len(_SHAPE.findall(shape.split(' → ')[-1]))} arrays)"
    if len(arrays) != 2:
        return shape
    (a_type, a_dims), (b_type, b_dims) = ((kind, dims.split(",")) for kind, dims in arrays)
    if len(a_dims) != len(b_dims):
        return shape
    pairs = [(a_type, b_type), *zip(a_dims, b_dims, strict=True)]
    kind, *dims = [a if a == b else f"{a}→{b}" for a, b in pairs]
    return f"{kind}[{','.join(dims)}]"


def _as_object(module: ModuleDiff, by: str) -> dict[str, Any]:
    """A module of the JSON output."""

    def run(dump: Dump | None) -> str | None:
        return None if dump is None else dump.run_id

    return {
        "module": module.name,
        "a_run": run(module.a),
        "b_run": run(module.b),
        "is_entry": not module.is_helper,
        "same": module.is_same,
        "cause": None if module.is_same else module.cause,
        "causes": () if module.is_same else module.causes.arrow().to_pylist(),
        "flags": module.flags.arrow().to_pylist(),
        "figures": [_figure(row) for row in module.metrics.arrow().to_pylist()],
        "buffers" if by == BUFFER else "groups": module.rows.arrow().to_pylist(),
    }


def _figure(row: dict[str, Any]) -> dict[str, Any]:
    """A metric by the name that it has on the command line."""
    return {"figure" if name == "metric" else name: value for name, value in row.items()}
