"""What to change in a module: a card a finding, which lights its buffers in the address map."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....schema.errors import UsageError
from ....schema.stores.base import Store
from ...advise import Advice, advise
from ...advising.finding import Finding
from ...advising.words import saved_words, together_words
from ...cells import ESTIMATED, one_line
from ...find_module import FoundModule
from ..page import Html, Section, Text, templates


def what_to_change(
    store: Store, found: FoundModule, memory_space: int, buffers: pa.Table
) -> Iterator[Section]:
    """The advice as a section after the map; none without live ranges.

    buffers: `module_buffers` of the space, which the map draws. Advice is of the device's main
    memory: what a program takes of another space is the compiler's choice.
    """
    if memory_space != 0:
        return
    try:
        advice = advise(store, found.module_id, found.run_id)
    except UsageError:
        # The dump has no live ranges, or shapes that nobody can read: nothing can be replayed.
        return
    parts: list[Text | Html] = [Text(one_line(advice.heading))]
    if advice.findings:
        parts.append(_cards(advice, _in_map(advice, buffers)))
    if len(advice.followed) > 1:
        parts.append(Text(together_words(advice.followed, advice.together)))
    if advice.is_estimated:
        parts.append(Text(ESTIMATED, "note"))
    yield Section("What to change", parts)


def _cards(advice: Advice, in_map: frozenset[int]) -> Html:
    lit = [[each for each in finding.value_ids if each in in_map] for finding in advice.findings]
    cards = [_card(*each) for each in zip(advice.findings, map(len, lit), strict=True)]
    return Html(
        templates().get_template("advice.html").render(cards=cards),
        scripts=("advice.js",),
        data={"advice": lit},
    )


def _card(finding: Finding, lit: int) -> dict[str, Any]:
    texts = {name: getattr(finding, name) for name in ("title", "source", "write", "why")}
    shown = {name: one_line(text) if text else "" for name, text in texts.items()}
    saving = {"saving": saved_words(finding), "saving_bytes": finding.saving_bytes}
    return shown | saving | {"lit": lit}


def _in_map(advice: Advice, buffers: pa.Table) -> frozenset[int]:
    """The values that have a rectangle in the map; an estimate has no map."""
    if advice.is_estimated:
        return frozenset()
    drawn = buffers.filter(pc.greater(buffers["size_bytes"], 0))
    return frozenset(drawn["value_id"].drop_null().to_pylist())
