"""Why the programs of a run differ from those that they are held against."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...schema.stores.base import Store
from .verdict import Verdict


def with_causes(
    store: Store, verdicts: Sequence[Verdict], programs: Sequence[dict[str, Any]]
) -> list[Verdict]:
    """The verdicts with their causes, each for the dump that it is held against.

    programs: the rows of `check_now`, which have the cause against the dump before.
    """
    told: dict[tuple[int, int], str | None] = {
        (row["compared_dump_id"], row["dump_id"]): row["cause"]
        for row in programs
        if row["compared_dump_id"] is not None
    }
    pairs = list(map(_pair, verdicts))
    asked = [pair for pair in pairs if pair is not None and pair not in told]
    if asked:
        rows = store.causes(asked).to_pylist()
        told |= {(row["a_dump_id"], row["b_dump_id"]): row["cause"] for row in rows}
    return [
        verdict if pair is None else replace(verdict, cause=told[pair])
        for verdict, pair in zip(verdicts, pairs, strict=True)
    ]


def _pair(verdict: Verdict) -> tuple[int, int] | None:
    """What a program is held against, and its dump; None if the two do not differ."""
    if verdict.status not in ("grown", "shrunk", "changed", "renamed"):
        return None
    if verdict.held_dump_id is None or verdict.dump_id is None:
        return None
    return verdict.held_dump_id, verdict.dump_id
