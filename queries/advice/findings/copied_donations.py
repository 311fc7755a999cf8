"""Arguments that are donated, and that XLA copies all the same."""

from typing import Any

import numpy as np

from ....schema.readable import human_bytes
from ...catalogue import statement
from ..asked_program import Program
from ..donation import CARRY, top_level
from ..finding import Finding, Grade
from ..replay import Change, saving
from . import OWNERS

PLACE, COMPUTES_AGAIN = 1, False
NEEDS: frozenset[str] = frozenset({OWNERS})

_WORTH = 0.001
_SHOWN = 3


def copied_donations(program: Program) -> list[Finding]:
    """A finding for each argument that a user can name, the largest saving first.

    The saving is at most that of a program without the copies: with what reads the argument in
    another order XLA plans the memory anew. XLA for CPU copies wherever nothing orders the reads,
    which a user can seldom change: a fact there, unless a loop is why.
    """
    layout = program.layout
    by_name: dict[str, list[dict[str, Any]]] = {}
    query = statement("advise.copied_donations")
    for row in program.rows(query, [layout.memory_space]).to_pylist():
        name = top_level(row["argument_name"], row["parameter_number"])
        by_name.setdefault(name, []).append(row)
    findings = []
    for name, copies in by_name.items():
        change = _without(program, copies)
        saved = saving(layout, change)
        if saved > _WORTH * layout.peak_bytes:
            findings.append(_finding(program, name, copies, saved, change))
    return sorted(findings, key=lambda each: -(each.high_bytes or 0))


def _without(program: Program, copies: list[dict[str, Any]]) -> Change:
    """The change that what stands beside the arguments' memory is not there."""
    layout = program.layout
    rows = layout.rows_of(np.array([copy["beside_value_id"] for copy in copies]))
    temps = layout.allocation_index[layout.is_temp]
    sets = layout.alias_set[rows[np.isin(layout.allocation[rows], temps)]]
    beside = layout.value_id[np.isin(layout.alias_set, sets)]
    return Change(gone=frozenset(beside.tolist()))


def _finding(
    program: Program, name: str, copies: list[dict[str, Any]], saved: int, change: Change
) -> Finding:
    first = next((copy for copy in copies if copy["source"] is not None), copies[0])
    size = human_bytes(sum(copy["copied_bytes"] for copy in copies))
    argument = first["argument_name"] or name
    names = [copy["copy_instruction"] for copy in copies]
    is_fact = program.platform == "cpu" and not first["is_of_loop"]
    if first["is_of_loop"]:
        why = f"the loop writes the next {argument} beside the last, and XLA copies it back"
        write = CARRY
    else:
        reader = first["reader"] or "an instruction"
        why = f"{reader} reads {argument} and may run after the output is written"
        write = (
            f"compute what needs the old {argument} before the new one, so that the new one"
            " depends on it; or do not donate it"
        )
    return Finding(
        kind="donated and copied",
        title=f"{name} is donated, but XLA copies {size} of it all the same",
        grade=Grade.fact if is_fact else Grade.at_most,
        write=write,
        why=f"{why}; the copies are {', '.join(dict.fromkeys(names[:_SHOWN]))}"
        + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""),
        value_ids=tuple(
            dict.fromkeys(
                copy[column]
                for column in ("beside_value_id", "argument_value_id")
                for copy in copies
            )
        ),
        source=first["source"],
        saving_bytes=None if is_fact else saved,
        low_bytes=None if is_fact else saved,
        high_bytes=saved,
        change=change,
    )
