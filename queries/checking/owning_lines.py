"""The source lines that own what grew: where an annotation on a pull request belongs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...schema.stores.base import Store
from ..catalogue import statement
from .judge import Verdict


@dataclass(frozen=True)
class Line:
    """A line of a source file, as the dump names it, and by how much its buffers grew."""

    file: str
    number: int
    change_bytes: int


def owning_lines(store: Store, verdicts: Sequence[Verdict]) -> dict[int, Line]:
    """Of each program that breaks a rule, by dump_id: the line whose buffers grew most.

    It is counted at the peaks. A program without a module before has the line with the most.
    """
    found: dict[int, Line] = {}
    known: dict[tuple[int | None, int], Line | None] = {}
    for verdict in verdicts:
        if not verdict.breaches or verdict.dump_id is None or verdict.module_id is None:
            continue
        pair = verdict.held_module_id, verdict.module_id
        if pair not in known:
            rows = store.rows(statement("check.line"), [*pair, verdict.memory_space]).to_pylist()
            known[pair] = Line(*rows[0].values()) if rows else None
        if line := known[pair]:
            found[verdict.dump_id] = line
    return found
