"""Finds why dumps differ. `find_causes` is the one function behind every cause that is shown."""

from collections.abc import Sequence

import pyarrow as pa

from .changes import (
    READER_CHANGED,
    Phrase,
    arguments,
    clones,
    collectives,
    compiler_and_flags,
    device,
    donation,
    has_same_instructions,
    health,
    in_order,
    layouts,
    loops,
    one_line,
    packing,
    program,
    rematerialised,
    renamed,
    results,
    saved,
    schedule,
    types,
)
from .sides import Pair, Rows, fetch

_AT_ONCE = 200
_SCHEMA = pa.schema(
    [
        ("a_dump_id", pa.int64()),
        ("b_dump_id", pa.int64()),
        ("cause", pa.string()),
        ("phrases", pa.list_(pa.string())),
    ]
)


def find_causes(rows: Rows, pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """Why the second dump of each pair differs from the first, in the order of the pairs.

    `rows` runs a query on the warehouse. Columns: a_dump_id, b_dump_id; cause, one line, null
    if nothing differs but names, lines and constants; phrases, all that is to be said.
    """
    told: dict[tuple[int, int], list[Phrase]] = {}
    # All modules of a year at once would take too much memory.
    for start in range(0, len(pairs), _AT_ONCE):
        fetched = fetch(rows, pairs[start : start + _AT_ONCE])
        told |= {pair: in_order(phrases_of(sides)) for pair, sides in fetched.items()}
    return pa.Table.from_pylist(
        [
            {
                "a_dump_id": pair[0],
                "b_dump_id": pair[1],
                "cause": one_line(told.get(pair, [])),
                "phrases": [phrase.text for phrase in told.get(pair, [])],
            }
            for pair in pairs
        ],
        schema=_SCHEMA,
    )


def phrases_of(pair: Pair) -> list[Phrase]:
    """What is to be said of a pair, consequences left out."""
    told = [*health(pair), *device(pair), *compiler_and_flags(pair)]
    if pair.has_modules and pair.is_read_otherwise:
        told.append(READER_CHANGED)
    elif pair.has_modules and pair.is_same_program:
        told += arguments(pair) if pair.has_shapes else []
    elif pair.has_modules:
        told += _of_modules(pair, is_set=bool(told))
    return told + renamed(pair)


def _of_modules(pair: Pair, *, is_set: bool) -> list[Phrase]:
    """What differs in the modules; `is_set` says that something else is told."""
    told = arguments(pair) if pair.has_shapes else []
    is_resized = any(phrase.kind == "argument" for phrase in told)
    donated = donation(pair) if pair.has_shapes and pair.has_figures else []
    # With the same instructions, what the program does otherwise is a consequence.
    is_same = pair.has_traits and has_same_instructions(pair)
    facts: list[Phrase] = []
    if pair.has_traits and not is_same:
        facts = _of_program(pair, is_resized=is_resized, is_donated=bool(donated))
    told += [*donated, *facts]
    if is_resized:
        return told
    if pair.has_shapes:
        told += [*results(pair), *layouts(pair)]
    if donated:
        return told
    if is_same:
        told += schedule(pair)
    if pair.has_figures and not facts:
        told += packing(pair)
        # Another compiler or other flags choose other collectives.
        told += [] if is_same or is_set else collectives(pair)
    if not (told or is_set):
        told += program(pair) if pair.has_traits else [Phrase("program", "unknown: no HLO text")]
    return told


def _of_program(pair: Pair, *, is_resized: bool, is_donated: bool) -> list[Phrase]:
    """What the program does otherwise, without what only follows from arguments or donation."""
    remat = rematerialised(pair)
    kept = saved(pair) if pair.has_figures else []
    if is_resized:
        return [*remat, *(kept if remat else ())]
    type_ = [] if remat else types(pair)
    told = [*remat, *type_, *(kept if remat or type_ or not is_donated else ())]
    return [*told, *loops(pair), *clones(pair)]
