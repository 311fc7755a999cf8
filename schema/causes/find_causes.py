"""Finds why dumps differ. `find_causes` is the one function behind every cause that is shown."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from .changes import (
    READER_CHANGED,
    Phrase,
    arguments,
    clones,
    collectives,
    compiler_and_flags,
    device,
    differing_pass,
    donation,
    has_same_instructions,
    health,
    in_order,
    layouts,
    loops,
    moved,
    one_line,
    packing,
    program,
    random_bits,
    rematerialised,
    renamed,
    results,
    schedule,
    types,
)
from .ledger import Difference, Entry, by_owner, differences, entry, exchanged, is_scaled
from .sides import Pair, Rows, fetch

_AT_ONCE = 200
_TERM = pa.struct(
    [
        ("kind", pa.string()),
        ("term", pa.string()),
        ("change_bytes", pa.int64()),
        ("source", pa.string()),
        ("role", pa.string()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("a_dump_id", pa.int64()),
        ("b_dump_id", pa.int64()),
        ("cause", pa.string()),
        ("terms", pa.list_(_TERM)),
    ]
)


def find_causes(rows: Rows, pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """Why the second dump of each pair differs from the first, in the order of the pairs.

    `rows` runs a query on the warehouse. Columns: a_dump_id, b_dump_id; cause, one line, null
    if nothing differs but names, lines and constants; terms, the rows of `causes` in order. If the
    peaks of both are known, the terms' change_bytes add up to the change of the peak.
    """
    phrases_by_pair: dict[tuple[int, int], list[Phrase]] = {}
    # All modules of a year at once would take too much memory.
    for start in range(0, len(pairs), _AT_ONCE):
        fetched = fetch(rows, pairs[start : start + _AT_ONCE])
        phrases_by_pair |= {pair: terms_of(sides) for pair, sides in fetched.items()}
    return pa.Table.from_pylist(
        [
            {
                "a_dump_id": pair[0],
                "b_dump_id": pair[1],
                "cause": one_line(phrases_by_pair.get(pair, [])),
                "terms": [
                    {
                        "kind": phrase.kind,
                        "term": phrase.text,
                        "change_bytes": phrase.change,
                        "source": phrase.source,
                        "role": phrase.role,
                    }
                    for phrase in phrases_by_pair.get(pair, [])
                ],
            }
            for pair in pairs
        ],
        schema=_SCHEMA,
    )


def terms_of(pair: Pair) -> list[Phrase]:
    """The ledger of a pair, in order: what differs, with the bytes of the peak that it explains.

    Each difference of the peaks goes to the first fact that explains it, else to the first that
    it scales with, else to its line.
    """
    facts = phrases_of(pair)
    if READER_CHANGED in facts:
        whole = Entry(pair.change("peak_bytes"), None, None)
        return in_order([_with_bytes(f, whole) if f == READER_CHANGED else f for f in facts])
    if not (pair.has_ledger and pair.differs("module_id")) or pair.is_same_program:
        return in_order(facts)
    explained, left = _explained(facts, differences(pair))
    phrases = moved(pair)
    if phrases:
        # What runs at the peak now is as many times larger as the arguments are.
        for fact, group in zip(facts, explained, strict=True):
            for ratio in fact.ratios:
                at_both, left = exchanged(left, ratio)
                group += at_both
    terms = [
        _with_bytes(fact, entry(group)) if group or fact.kind == "argument" else fact
        for fact, group in zip(facts, explained, strict=True)
    ]
    if not {fact.kind for fact in facts} & _OTHER_COLLECTIVES:
        others = collectives(pair)
        explained, left = _explained(others, left)
        terms += [
            _with_bytes(fact, entry(group))
            for fact, group in zip(others, explained, strict=True)
            if group
        ]
    change = sum(abs(term.change or 0) for term in terms)
    if phrases and sum(abs(difference.change) for difference in left) > change:
        at_both, left = exchanged(left)
        terms += [_with_bytes(phrase, entry(at_both)) for phrase in phrases]
    lines = [
        _with_bytes(Phrase("line", words, short) if words else _SMALLER, bytes_)
        for words, short, bytes_ in by_owner(left)
    ]
    # Where lines are told, the numbers of instructions tell nothing.
    return in_order([*(term for term in terms if term.kind != "program" or not lines), *lines])


def _explained(
    facts: Sequence[Phrase], left: list[Difference]
) -> tuple[list[list[Difference]], list[Difference]]:
    """The differences that each fact explains, and those that none does."""
    explained: list[list[Difference]] = [[] for _ in facts]
    rest: list[Difference] = []
    for difference in left:
        rules = (
            *(fact.explains is not None and fact.explains(difference) for fact in facts),
            *(is_scaled(difference, fact.ratios) for fact in facts),
        )
        first = next((number for number, holds in enumerate(rules) if holds), None)
        (rest if first is None else explained[first % len(facts)]).append(difference)
    return explained, rest


def _with_bytes(fact: Phrase, bytes_: Entry) -> Phrase:
    # Not the bytes of the arguments beside those of the peak.
    text = fact.text if fact.kind != "donation" else re.sub(r": \S+ \S+ of ", ": ", fact.text)
    return replace(fact, text=text, change=bytes_.change, source=bytes_.source, role=bytes_.role)


_SMALLER = Phrase("remainder", "smaller changes")
# These choose other collectives by themselves.
_OTHER_COLLECTIVES = frozenset({"device", "compiler", "flag", "remat", "donation"})


def phrases_of(pair: Pair) -> list[Phrase]:
    """What is to be said of a pair, consequences left out."""
    phrases = [*health(pair), *device(pair), *compiler_and_flags(pair)]
    if pair.has_modules and pair.is_read_otherwise:
        phrases.append(READER_CHANGED)
    elif pair.has_modules and pair.is_same_program:
        phrases += arguments(pair) if pair.has_shapes else []
    elif pair.has_modules:
        phrases += differing_pass(pair)
        phrases += _of_modules(pair, is_set=bool(phrases))
    return phrases + renamed(pair)


def _of_modules(pair: Pair, *, is_set: bool) -> list[Phrase]:
    """What differs in the modules; `is_set` says that something else is told."""
    phrases = arguments(pair) if pair.has_shapes else []
    is_resized = any(phrase.kind in ("argument", "layers") for phrase in phrases)
    donated = donation(pair) if pair.has_shapes and pair.has_figures else []
    # With the same instructions, what the program does otherwise is a consequence.
    is_same = pair.has_traits and has_same_instructions(pair)
    facts: list[Phrase] = []
    if pair.has_traits and not is_same:
        remat = rematerialised(pair, is_resized=is_resized)
        facts = [*random_bits(pair), *remat]
        facts += [] if is_resized or remat else types(pair)
        facts += loops(pair)
        facts += [] if is_resized else clones(pair)
    phrases += [*donated, *facts]
    if is_resized:
        return phrases
    if pair.has_shapes:
        phrases += [*results(pair), *layouts(pair)]
    if donated:
        return phrases
    if is_same:
        phrases += schedule(pair)
    if pair.has_figures and not facts:
        phrases += packing(pair)
    if not (phrases or is_set):
        phrases += program(pair) if pair.has_traits else [Phrase("program", "unknown: no HLO text")]
    return phrases
