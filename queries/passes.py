"""What the compiler's passes did to a program, and which of them made its large buffers."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from ..schema.readable import human_bytes
from ..schema.store import Store
from .catalogue import statement
from .modules import find_module
from .result import Rows

# A step moves the estimate if it changes it by this share.
_LEAST_SHARE = 1e-3
_EMPTY = (
    "the dump has no texts between the compiler's passes: `memhouse record --passes` dumps them, "
    "as XLA does with --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"
)
_WORDS = {
    "appeared": "makes {}",
    "fused": "fuses {}",
    "copied": "copies {}",
    "rematerialised": "computes {} again",
    "asynchronous": "makes {} asynchronous",
    "layout": "changes the layout of {}",
    "type": "changes the type of {}",
    "replaced": "replaces {}",
}
_FINAL = "after the last text"
_PROGRAM = "the program itself"
# After these a buffer is there that was not before.
_MAKING = ("appeared", "copied", "rematerialised")


def passes(
    store: Store,
    module: str | int,
    *,
    run: str | None = None,
    buffers: bool = False,
    every: bool = False,
) -> Rows:
    """The rows of `Warehouse.passes`."""
    found = find_module(store, module, run)
    rows = _of_buffers(store, found.module_id) if buffers else _of_steps(store, found.module_id)
    if not buffers and not every:
        least = _LEAST_SHARE * max((row["estimated_peak_bytes"] for row in rows), default=0)
        rows = [
            row
            for row in rows
            if row["change_bytes"] is None or row["buffers"] or abs(row["change_bytes"]) > least
        ]
    return Rows(_table(rows, buffers=buffers), found.caption, _EMPTY)


def _table(rows: Sequence[Mapping[str, Any]], *, buffers: bool) -> Any:
    whole, text, truth = pa.int64(), pa.string(), pa.bool_()
    columns = (
        {
            "size_bytes": whole,
            "instruction": text,
            "source": text,
            "made_by": text,
            "compiler_passes": text,
            "is_certain": truth,
            "shape": text,
            "op_name": text,
        }
        if buffers
        else {
            "step": whole,
            "pipeline": text,
            "compiler_pass": text,
            "estimated_peak_bytes": whole,
            "change_bytes": whole,
            "change_instructions": whole,
            "what": text,
        }
    )
    schema = pa.schema(list(columns.items()))
    return pa.Table.from_pylist([{name: row[name] for name in columns} for row in rows], schema)


def _of_steps(store: Store, module_id: int) -> list[dict[str, Any]]:
    touched: dict[int, list[str]] = {}
    for row in store.rows(statement("passes.touched"), [module_id]).to_pylist():
        if row["event"] in _WORDS:
            count = row["buffers"]
            what = "1 large buffer" if count == 1 else f"{count} large buffers"
            words = _WORDS[row["event"]].format(f"{what} ({human_bytes(row['size_bytes'])})")
            touched.setdefault(row["step"], []).append(words)
    steps: list[dict[str, Any]] = store.rows(statement("passes.steps"), [module_id]).to_pylist()
    for row in steps:
        told = touched.get(row["step"], [])
        row["buffers"] = len(told)
        counted = [row["changes"]] if row["changes"] else []
        row["what"] = "; ".join([*told, *counted]) or None
        if row["pipeline"] is None:
            row["pipeline"] = _FINAL
    return steps


def _of_buffers(store: Store, module_id: int) -> list[dict[str, Any]]:
    rows = store.rows(statement("passes.buffers"), [module_id]).to_pylist()
    found = []
    for _, group in groupby(rows, itemgetter("value_id")):
        events = list(group)
        making = [row for row in events if row["event"] in _MAKING]
        told = [f"{row['event']}: {_pass(row)}" for row in events if row["event"] != "program"]
        found.append(
            {
                **events[0],
                "made_by": _pass(making[-1]) if making else _PROGRAM,
                "compiler_passes": ", ".join(told) or None,
                "is_certain": all(row["is_certain"] for row in events),
            }
        )
    return found


def _pass(row: Mapping[str, Any]) -> str:
    """A pass by name, with its text's number."""
    if row["pipeline"] is None:
        return _FINAL
    return f"{row['compiler_pass'] or row['pipeline']} ({row['step']})"
