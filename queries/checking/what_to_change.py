"""What to change in the programs that fail, so that they fit again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...schema.errors import UsageError
from ...schema.stores.base import Store
from ..advice.finding import Finding
from ..advise import advise
from .judge import Verdict

# Working out the advice of a large program takes seconds.
_PROGRAMS = 3
_FINDINGS = 3


@dataclass(frozen=True)
class Changes:
    """What to change in a program: its name, and at most three findings with a saving."""

    name: str
    findings: tuple[Finding, ...]


def what_to_change(store: Store, verdicts: Sequence[Verdict]) -> list[Changes]:
    """Of the first programs that fail: what would lower their peak most, if anything is known."""
    failing: dict[int, Verdict] = {}
    for verdict in verdicts:
        # What a program takes of another memory is the compiler's choice.
        if verdict.outcome == "fail" and verdict.module_id is not None and not verdict.memory_space:
            failing.setdefault(verdict.module_id, verdict)
    return list(_changes(store, list(failing.values())[:_PROGRAMS]))


def _changes(store: Store, failing: Sequence[Verdict]) -> Iterator[Changes]:
    for verdict in failing:
        assert verdict.module_id is not None
        try:
            found = advise(store, verdict.module_id)
        except UsageError:
            # The dump has no live ranges: nothing can be replayed.
            continue
        if found.followed:
            yield Changes(verdict.name, found.followed[:_FINDINGS])
