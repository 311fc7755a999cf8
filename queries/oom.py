"""Why memory ran out: by how much, what fills it, whose lines, and what to look at first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from ..schema import arrow
from ..schema.errors import UsageError
from ..schema.oom_dumps import dump_of, dumps_that_fit
from ..schema.quoting import command
from ..schema.stores.base import Store
from .advice.finding import Finding
from .advise import advise
from .catalogue import statement
from .cells import human_bytes, without_layout
from .oom_advice import (
    MORE_AT_RUN_TIME,
    MORE_WITHOUT,
    advice_of_dump,
    advice_of_kernel,
    advice_of_message,
)
from .oom_words import parts_of, title_of
from .owners import owners
from .result import Result, Rows
from .runs import require_runs

_LINES = 5
# A list that explains less of the need than this share is not shown.
_WORTH = 0.01
_FILLED = pa.schema(
    [
        ("size_bytes", pa.int64()),
        ("is_rounded", pa.bool_()),
        ("buffers", pa.int64()),
        ("source", pa.string()),
        ("shape", pa.string()),
    ]
)
_LOG_ONLY = (
    "; of a kernel's memory (VMEM, SMEM), and when a program runs, only the log says it: "
    "`memhouse oom LOG`"
)
_Row = dict[str, Any]


@dataclass(frozen=True)
class OomAnswer:
    """What is to be said of one report.

    title: by how much of which memory; facts: lines on where, and on the parts; filled_by: rows
    with size_bytes, is_rounded, buffers (a count), source and shape, the largest first;
    filled_from: what these are rows of; first: what to look at first; more: how to learn more.
    """

    title: str
    facts: tuple[str, ...]
    filled_by: Rows
    filled_from: str
    first: tuple[str, ...]
    more: tuple[str, ...]

    def __str__(self) -> str:
        """The answer as the command prints it, but for the width of its lines."""
        lines = [self.title, *(f"  {fact}" for fact in self.facts)]
        if len(self.filled_by):
            lines += ["", f"what fills it, {self.filled_from}:"]
            lines += map(_filled_line, self.filled_by.arrow().to_pylist())
        if self.first:
            lines += ["", "look first at:"]
            lines += [f"  {number}. {text}" for number, text in enumerate(self.first, start=1)]
        if self.more:
            lines += ["", "more:", *(f"  {text}" for text in self.more)]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Oom(Result):
    """Why memory ran out.

    rows: a row a report, as in `oom_reports`; buffers: what the messages list, as in
    `oom_buffers`; answers: one for each report, in their order.
    """

    rows: Rows
    buffers: Rows
    answers: tuple[OomAnswer, ...]

    def tables(self) -> Sequence[Rows]:
        """What fills the memory, a table an answer; the columns of `rows` are for programs."""
        filled = [(each.filled_by, f"what fills it, {each.filled_from}") for each in self.answers]
        return [replace(rows, caption=caption) for rows, caption in filled if len(rows)]

    def sentences(self) -> Sequence[str]:
        """By how much memory ran out, where, and what to look at first."""
        told = [(each.title, *each.facts, *each.first, *each.more) for each in self.told()]
        return [line for lines in told for line in lines] or [self.rows.empty]

    def told(self) -> tuple[OomAnswer, ...]:
        """The answers to read one after the other: the same advice is given once."""
        told: list[OomAnswer] = []
        for answer in self.answers:
            first, more = answer.first, answer.more
            if first and any(first == before.first for before in self.answers[: len(told)]):
                first = ("the same as above",)
            if any(more == before.more for before in self.answers[: len(told)]):
                more = ()
            told.append(replace(answer, first=first, more=more))
        return tuple(told)

    def __str__(self) -> str:
        """The answers as the command prints them, or why there are none."""
        return "\n\n".join(map(str, self.told())) or self.rows.empty


def oom(store: Store, run: str | None = None) -> Oom:
    """Why memory ran out in a run; without one, in the latest run in which it did.

    A dump of a module that did not fit answers without a message too. Raises UsageError.
    """
    require_runs(store, (run, "run"))
    if run is None:
        names = store.rows(statement("oom_runs"))["run_id"].to_pylist()
        if not names:
            return _nothing(
                f"no run holds a message or a dump that says that memory ran out{_LOG_ONLY}"
            )
        run = str(names[0])
    reports = store.rows(statement("oom_reports"), [run]).to_pylist()
    buffers = store.rows(statement("oom_buffers"), [run]).to_pylist()
    told = {report["dump_id"] for report in reports}
    dumps = store.rows(statement("oom_dumps"), [run, None]).to_pylist()
    silent = [_of_dump(dump) for dump in dumps if dump["dump_id"] not in told]
    if not reports and not silent:
        return _nothing(f"no message and no dump of run {run} says that memory ran out{_LOG_ONLY}")
    return _explained(store, [*reports, *silent], buffers)


def explain(store: Store | None, reports: pa.Table, buffers: pa.Table, source: str) -> Oom:
    """Why memory ran out by the messages of a log that is not stored.

    `reports` and `buffers` are rows as in `oom_reports` and `oom_buffers`. With a store, the
    modules' dumps in it answer what the messages do not say.
    """
    rows = reports.to_pylist()
    if not rows:
        return _nothing(f"{source}: no out-of-memory message of XLA")
    listed = buffers.to_pylist()
    if store is not None:
        for row in rows:
            own = [buffer for buffer in listed if buffer["oom_id"] == row["oom_id"]]
            row["dump_id"] = dump_of(store.rows, row, own)
    return _explained(store, rows, listed)


def _nothing(why: str) -> Oom:
    empty = Rows(arrow.schema("oom_reports").empty_table(), empty=why)
    return Oom(empty, Rows(arrow.schema("oom_buffers").empty_table(), empty=why), ())


def _filled_line(row: _Row) -> str:
    size = f"{'~' if row['is_rounded'] else ''}{human_bytes(row['size_bytes'])}"
    what = without_layout(row["shape"] or "")
    return f"  {size:>11}  {row['buffers']:>3}  {row['source']}  {what}".rstrip()


def _explained(store: Store | None, reports: Sequence[_Row], buffers: Sequence[_Row]) -> Oom:
    answers = []
    for report in reports:
        own = [buffer for buffer in buffers if buffer["oom_id"] == report["oom_id"]]
        dump = None
        fits: Sequence[Mapping[str, Any]] = ()
        if store is not None and report["dump_id"] is None:
            run_id = report["run_id"] or None
            folder = PurePosixPath(report["path"]).parent.as_posix() if run_id else None
            fits = dumps_that_fit(store.rows, report, own, run_id=run_id, workload=folder)
        elif store is not None:
            (dump,) = store.rows(statement("oom_dumps"), [None, report["dump_id"]]).to_pylist()
        answers.append(_answer(store, report, own, dump, fits))
    return Oom(
        Rows(arrow.rows("oom_reports", reports)),
        Rows(arrow.rows("oom_buffers", buffers), empty="the messages list no buffers"),
        tuple(answers),
    )


def _of_dump(dump: _Row) -> _Row:
    """A report that only the dump makes: there was no message."""
    capacity, total = dump["device_memory_bytes"], dump["total_bytes"]
    columns: _Row = dict.fromkeys(arrow.schema("oom_reports").names)
    return columns | {
        "oom_id": dump["dump_id"],
        "run_id": dump["run_id"],
        "dump_id": dump["dump_id"],
        "path": dump["workload"],
        "times": 1,
        "kind": "program",
        "space_name": "hbm",
        "module_name": dump["module_name"],
        "used_bytes": total,
        "capacity_bytes": capacity,
        "exceeded_bytes": None if capacity is None or total is None else total - capacity,
        "is_rounded": False,
        "is_cut": False,
        "message": "",
    }


def _answer(
    store: Store | None,
    report: _Row,
    buffers: Sequence[_Row],
    dump: _Row | None,
    fits: Sequence[Mapping[str, Any]],
) -> OomAnswer:
    is_program = report["kind"] == "program" or (
        report["kind"] == "allocation" and report["space_name"] == "hbm"
    )
    facts = parts_of(report, dump, fits)
    more: tuple[str, ...] = MORE_WITHOUT
    if report["kind"] == "runtime" and report["module_name"] is None:
        more = MORE_AT_RUN_TIME
    filled, filled_from = _filled_by_message(report, buffers)
    if dump is not None and dump["module_id"] is not None:
        module = (dump["module_id"], "--run", dump["run_id"])
        more = (command("buffers", *module), command("owners", *module, "--by", "scope"))
    if not is_program:
        first = advice_of_kernel(report)
        more = () if report["kind"] != "runtime" else more
    elif store is not None and dump is not None and dump["peak_bytes"] is not None:
        found = owners(store, dump["module_id"], run=dump["run_id"], limit=_LINES).table
        filled, filled_from = _filled_by_dump(found), "at the peak, from the dump"
        first = advice_of_dump(report, dump, found.to_pylist(), _changes(store, dump["module_id"]))
    else:
        first = advice_of_message(report, buffers)
    return OomAnswer(title_of(report), facts, Rows(filled), filled_from, first, more)


def _changes(store: Store, module_id: int) -> Sequence[Finding]:
    """What would lower the peak most; nothing if the dump says too little for that."""
    try:
        return advise(store, module_id).first
    except UsageError:
        return ()


def _filled_by_dump(found: pa.Table) -> pa.Table:
    rows = [
        {
            "size_bytes": row["counted_bytes"],
            "is_rounded": False,
            "buffers": row["buffers"],
            "source": row["source"] + ("?" if row["is_guess"] else ""),
            "shape": row["categories"],
        }
        for row in found.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=_FILLED)


def _filled_by_message(report: _Row, buffers: Sequence[_Row]) -> tuple[pa.Table, str]:
    """The buffers of the message by the line, or else the operation, that makes them."""
    owned: dict[tuple[str, str], list[_Row]] = {}
    for buffer in buffers:
        owned.setdefault((_owner(buffer), buffer["shape"] or ""), []).append(buffer)
    rows = [
        {
            "size_bytes": sum(buffer["size_bytes"] for buffer in same),
            "is_rounded": any(buffer["is_rounded"] for buffer in same),
            "buffers": len(same),
            "source": source,
            "shape": shape,
        }
        for (source, shape), same in owned.items()
    ]
    rows.sort(key=lambda row: -int(row["size_bytes"]))
    listed = sum(buffer["size_bytes"] for buffer in buffers)
    if listed < _WORTH * (report["used_bytes"] or 0):
        rows = []
    count = len(buffers)
    what = f"the {count} largest buffers" if count > 1 else "the largest buffer"
    cut = ", of a list that is cut" if report["is_cut"] else ""
    return (
        pa.Table.from_pylist(rows[:_LINES], schema=_FILLED),
        f"{what} in the message{cut}" if count else "",
    )


def _owner(buffer: Mapping[str, Any]) -> str:
    if buffer["source_file"]:
        return f"{buffer['source_file']}:{buffer['source_line'] or '?'}"
    if buffer["allocation_type"] == "argument":
        return "(arguments)"
    return str(buffer["op_name"] or buffer["instruction"] or f"({buffer['opcode'] or 'not named'})")
