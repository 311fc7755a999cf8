"""Small random histories: few groups and few contents, so that everything collides."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from ..schema.plain_history import GRADES, Dump, Group, Run

_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_GROUPS = [
    (workload, name, platform)
    for workload in ("gen", "train")
    for name in ("jit_a", "jit_b")
    for platform in ("tpu", None)
]
_LABELS = [[("", "")], [("main", ""), ("pr-1", "")], [("", ""), ("main", ""), ("main", "tpu")]]
_FAILED: dict[str, Any] = {}
_MIB = 1 << 20
# An estimate has a peak, but no allocations.
_UNSIZED = ["estimated", None]

Placed = list[tuple[Group, dict[str, Any]]]


@st.composite
def _contents(draw):
    """A content: ids of few values, null as without HLO text; figures of some origin or none."""
    size = draw(st.sampled_from([100, 200, 400, 800, _MIB, None]))
    return {
        "program": draw(st.none() | st.integers(1, 4)),
        "signature": draw(st.none() | st.sampled_from(["s1", "s2"])),
        "skeleton": draw(st.none() | st.integers(1, 2)),
        "total_bytes": size,
        "origin": draw(st.sampled_from([*GRADES] if size else _UNSIZED)),
        "is_tiny": size != _MIB and draw(st.booleans()),
    }


@st.composite
def _edited(draw, placed, groups, contents):
    """A night that differs from another at a few places."""
    placed = list(placed)
    for edit in draw(st.lists(st.sampled_from(["add", "drop", "change", "rename"]), max_size=3)):
        at = draw(st.integers(0, len(placed)))
        if edit == "add" or at == len(placed):
            placed.insert(at, (draw(groups), draw(contents)))
        elif edit == "drop":
            del placed[at]
        elif edit == "change":
            placed[at] = (placed[at][0], draw(contents))
        else:
            placed[at] = (draw(groups), placed[at][1])
    return placed


@st.composite
def histories(draw):
    """Runs in the order in which they enter, each with its dumps."""
    contents = st.sampled_from([_FAILED, *draw(st.lists(_contents(), min_size=1, max_size=6))])
    groups = st.sampled_from(draw(st.lists(st.sampled_from(_GROUPS), min_size=1, max_size=4)))
    labels = st.sampled_from(draw(st.sampled_from(_LABELS)))
    nights: list[Placed] = [[]]
    found: list[tuple[Run, list[Dump]]] = []
    for number in range(1, draw(st.integers(2, 7)) + 1):
        nights.append(draw(_edited(draw(st.sampled_from(nights)), groups, contents)))
        run_at = _DAY + timedelta(days=draw(st.integers(0, 4)))
        run = Run(f"r{number}", run_at, number, *draw(labels))
        found.append((run, _dumps(run, nights[-1])))
    return found


def _dumps(run: Run, placed: Iterable[tuple[Group, dict[str, Any]]]) -> list[Dump]:
    places: Counter[Group] = Counter()
    dumps = []
    for number, (group, content) in enumerate(placed):
        places[group] += 1
        # Ids in the reverse of the places: an order by id would be wrong.
        dump_id = 1000 * run.run_seq - number
        dumps.append(Dump(dump_id, run.run_id, *group, places[group], **content))
    return dumps


@st.composite
def steps(draw, history):
    """Runs that enter, and what users do between: (what, run, its dumps or the change).

    Users delete, relabel and replace runs, correct their times, and read dumps again.
    """
    found: list[tuple[str, str, Any]] = []
    there: list[tuple[Run, list[Dump]]] = []
    kinds = st.sampled_from(["delete", "label", "time", "dump", "replace", "none"])
    for entry in history:
        found.append(("enter", entry[0].run_id, entry))
        there.append(entry)
        kind = draw(kinds)
        run, dumps = draw(st.sampled_from(there))
        if kind == "delete":
            there.remove((run, dumps))
            found.append((kind, run.run_id, None))
        elif kind == "label":
            branch, suite = draw(st.sampled_from([("", ""), ("main", ""), ("pr-1", "tpu")]))
            found.append((kind, run.run_id, {"branch": branch, "suite": suite}))
        elif kind == "time":
            run_at = _DAY + timedelta(days=draw(st.integers(-1, 5)))
            found.append((kind, run.run_id, {"run_at": run_at}))
        elif kind == "dump" and dumps:
            dump = draw(st.sampled_from(dumps))
            found.append((kind, run.run_id, replace(dump, **draw(_contents()))))
        elif kind == "replace":
            _, night = draw(st.sampled_from(history))
            first = -1000 * len(found)
            moved = [
                replace(dump, run_id=run.run_id, dump_id=first - number)
                for number, dump in enumerate(night)
            ]
            found.append((kind, run.run_id, moved))
            there[there.index((run, dumps))] = (run, moved)
    return found
