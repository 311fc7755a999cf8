"""Buffers that are alive across the peak though nothing touches them: the host could keep them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..catalogue import statement
from ..cells import human_bytes
from .asked_program import Program
from .finding import Finding, Grade
from .on_chip import least_saving
from .replay import Change, Piece, saving

_SHOWN = 20
# A smaller part of the peak is not worth a transfer, and a shorter rest, as a part of the
# schedule, has no time for two.
_LARGE = 0.001
_LONG = 0.2
_POLICY = (
    "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[],"
    ' names_which_can_be_offloaded=["idle"], offload_src="device", offload_dst="pinned_host")'
)


def idle(program: Program) -> list[Finding]:
    """At most two findings: residuals to offload, and other buffers to move to the host.

    The saving is at most that: the host's memory must take the bytes, and both transfers need
    room of their own. A program for CPU has no other memory to offload to.
    """
    if program.platform not in ("tpu", "gpu"):
        return []
    rows = program.rows(statement("advise_idle"), [program.layout.memory_space]).to_pylist()
    large, long = _LARGE * program.layout.peak_bytes, _LONG * program.layout.schedule_length
    rows = [row for row in rows if row["size_bytes"] >= large and _rest(row) >= long]
    residuals = [row for row in rows if row["is_saved_for_backward"]]
    others = [row for row in rows if not row["is_saved_for_backward"]]
    return [
        *_finding(
            program,
            residuals,
            "residuals that nothing reads at the peak",
            f"jax.checkpoint(f, policy={_POLICY}), and"
            ' jax.ad_checkpoint.checkpoint_name(value, "idle") around each of these values',
            choice="residuals that are not stacked",
        ),
        *_finding(
            program,
            others,
            "buffers that nothing touches at the peak",
            "jax.device_put(value, jax.memory.Space.Host), which is pinned_host, after the last"
            " use before the peak, and jax.device_put(value, jax.memory.Space.Device) before the"
            " next",
        ),
    ]


def _finding(
    program: Program,
    rows: Sequence[dict[str, Any]],
    what: str,
    write: str,
    choice: str | None = None,
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
    return [
        Finding(
            kind="idle",
            title=f"keep on the host {len(rows)} {what}",
            grade=Grade.at_most,
            write=write,
            why=f"{human_bytes(sum(row['size_bytes'] for row in rows))} rest there; first"
            f" {most['operation']} at {most['source']}: {human_bytes(most['size_bytes'])}, of"
            f" {layout.schedule_length} steps untouched for {_rest(most)}",
            value_ids=tuple(row["value_id"] for row in rows[:_SHOWN]),
            source=most["source"],
            saving_bytes=saved,
            change=change,
            choice=choice,
        )
    ]


def _rest(row: dict[str, Any]) -> int:
    return int(row["idle_end_time"] - row["idle_start_time"])
