"""Buffers that are alive across the peak though nothing touches them: the host could keep them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ....schema.readable import human_bytes
from ...catalogue import statement
from ...cells import counted
from ..asked_program import Program, least_saving
from ..finding import Finding, Grade
from ..replay import Change, Piece, saving
from ..saved_residuals import read_residuals, read_scans
from . import OWNERS

PLACE, COMPUTES_AGAIN = 6, False
NEEDS: frozenset[str] = frozenset({OWNERS})

_LINES = 6
# A smaller part of the peak is not worth a transfer, and a shorter rest, as a part of the
# schedule, has no time for two.
_LARGE = 0.001
_LONG = 0.2
_POLICY = (
    "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[],"
    ' names_which_can_be_offloaded=["idle"], offload_src="device", offload_dst="pinned_host")'
)

_MOVED = (
    "jax.device_put(value, jax.memory.Space.Host), which is pinned_host, of the values of {lines}"
    " after the last use before the peak, and jax.device_put(value, jax.memory.Space.Device)"
    " before the next"
)


def idle(program: Program) -> list[Finding]:
    """At most three findings: what a scan saves, other residuals, and other buffers.

    What a scan saves goes to the host and back a layer at a time: the saving is at most what is
    told. XLA takes all else back from the host as soon as it is there, so that a program may need
    no less: a fact, without a figure. A program for CPU has no other memory to offload to.
    """
    if program.platform not in ("tpu", "gpu"):
        return []
    rows = program.rows(statement("advise.idle"), [program.layout.memory_space]).to_pylist()
    large, long = _LARGE * program.layout.peak_bytes, _LONG * program.layout.schedule_length
    rows = [row for row in rows if row["size_bytes"] >= large and _rest(row) >= long]
    # What XLA made itself has no line, and nobody can move it.
    rows = [row for row in rows if row["source"] is not None]
    scans = read_scans(program, read_residuals(program))
    stacked = {value for scan in scans for stack in scan.stacks for value in stack.value_ids}
    stacks = [row for row in rows if row["value_id"] in stacked]
    rows = [row for row in rows if row["value_id"] not in stacked]
    residuals = [row for row in rows if row["is_saved_for_backward"]]
    others = [row for row in rows if not row["is_saved_for_backward"]]
    return [
        *_finding(program, stacks, Grade.at_most, "residual of a scan", _offloaded("the body")),
        *_finding(program, residuals, Grade.fact, "residual", _offloaded("the function")),
        *_finding(program, others, Grade.fact, "buffer", _MOVED),
    ]


def _offloaded(function: str) -> str:
    return (
        'jax.ad_checkpoint.checkpoint_name(value, "idle") around the values of {lines}, and'
        f" jax.checkpoint(f, policy={_POLICY}) around {function} f that they are in, which"
        " computes again all else that it saves now"
    )


def _finding(
    program: Program, rows: Sequence[dict[str, Any]], grade: Grade, what: str, write: str
) -> list[Finding]:
    if not rows:
        return []
    layout = program.layout
    sets = np.array([row["alias_set"] for row in rows], np.int64)
    gone = layout.value_id[np.isin(layout.alias_set, sets)]
    pieces = [
        Piece(place, row["size_bytes"], start, end)
        for place, row in enumerate(rows)
        for start, end in (
            (row["start_time"], row["idle_start_time"]),
            (row["idle_end_time"], row["end_time"]),
        )
    ]
    change = Change(gone=frozenset(gone.tolist()), pieces=tuple(pieces))
    saved = saving(layout, change)
    if saved <= least_saving(program):
        return []
    most = rows[0]
    is_fact = grade is Grade.fact
    at_once = "; XLA may take them back at once, and then nothing is saved" if is_fact else ""
    several, _, of = what.partition(" ")
    return [
        Finding(
            kind="idle",
            title="keep on the host what nothing touches at the peak:"
            f" {counted(len(rows), several)}{of and ' ' + of}",
            grade=grade,
            write=write.format(lines=_lines(rows)),
            why=f"{human_bytes(sum(row['size_bytes'] for row in rows))} rest there; first"
            f" {most['operation']} at {most['source']}: {human_bytes(most['size_bytes'])}, of"
            f" {layout.schedule_length} steps untouched for {_rest(most)}{at_once}",
            value_ids=tuple(row["value_id"] for row in rows),
            source=most["source"],
            saving_bytes=None if is_fact else saved,
            change=None if is_fact else change,
        )
    ]


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    """The lines of buffers, the most bytes first, each once."""
    lines: Counter[str] = Counter()
    for row in rows:
        lines[row["source"]] += row["size_bytes"]
    first = [line for line, _ in lines.most_common(_LINES)]
    more = f" and {len(lines) - _LINES} more lines" if len(lines) > _LINES else ""
    return ", ".join(first) + more


def _rest(row: dict[str, Any]) -> int:
    return int(row["idle_end_time"] - row["idle_start_time"])
