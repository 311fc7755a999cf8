"""The report of a diff: what grew or shrank from A to B, and why."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ....schema.stores.base import Store
from ...cells import counted
from ...diff import BUFFER, Diff, changed_buffers, changed_owners, diff
from ...owners import OWNERS
from ..page import Beside, Chart, Fact, Part, Report, Section, Text
from .compared_maps import compared_maps
from .compared_sides import Compared, compared_sides
from .compared_tables import changes_table, figures_tables, flags_table, modules_table
from .waterfall import Bar, bars, waterfall_chart

# Modules with charts of their own: a page of more would be too large to open.
_CHARTED = 6
# What the bars and the tables sum the change by; the first is shown first.
_KINDS = ("source", "scope", "role", "pass")
_LISTED = 20


def diff_report(store: Store, a: str, b: str, workload: str | None = None) -> Report:
    """What differs from A to B, two runs (of one workload) or two modules. Raises UsageError.

    A single module that changed has the page to itself; of several each has a section, the
    largest change of the peak first.
    """
    found = diff(store, a, b, workload, by=_KINDS[0])
    both = compared_sides(store, found.modules)
    changed = _changed(both)
    same = [each for each in both if not each.has_changed]
    others = _others(found, same)
    if len(changed) == 1 or len(found.modules) == len(both) == 1:
        (only,) = changed or both
        parts = [*_parts(store, only, ""), *(others if len(found.modules) > 1 else ())]
        return Report(
            only.diff.name,
            _runs(only),
            _facts(only),
            (Section("", parts),),
            gist=f"peak {only.change_text}",
        )
    overview: list[Part] = list(others)
    if both:
        overview.append(modules_table([*changed, *same]))
    if len(changed) > _CHARTED:
        said = counted(len(changed) - _CHARTED, "module")
        overview.append(
            Text(f"{said} that changed less: only in the table. --workload gives charts.", "note")
        )
    sections = [
        Section(
            each.diff.name,
            _parts(store, each, f"_{place}" if place > 1 else ""),
            facts=_facts(each),
        )
        for place, each in enumerate(changed[:_CHARTED], 1)
    ]
    alone = len(found.modules) - len(both)
    facts = [
        Fact("changed", "modules that changed", f"{len(changed)} of {len(both)}"),
        *([Fact("alone", "only in A or only in B", str(alone))] if alone else ()),
        *(_largest(changed[0]) if changed and changed[0].has_peaks else ()),
    ]
    gist = f"{len(changed)} of {counted(len(both), 'module')} changed"
    return Report(f"{a} → {b}", "", facts, (Section("", overview), *sections), gist=gist)


def waterfalls(store: Store, found: Diff, most: int) -> list[Chart]:
    """From peak A to peak B, of the modules whose peaks change most."""
    charts = []
    for place, each in enumerate(_changed(compared_sides(store, found.modules))[:most], 1):
        a, b = each.a.dump.module_id, each.b.dump.module_id
        if not each.change_bytes or a is None or b is None:
            continue
        buffers = _in_memory(changed_buffers(store, a, b))
        changed = changed_owners(store, a, b, _KINDS)
        owners = {kind: _in_memory(rows) for kind, rows in changed.items()}
        charts.append(_waterfall(each, buffers, owners, f"_{place}"))
    return charts


def _changed(both: Sequence[Compared]) -> list[Compared]:
    """Those that changed, the largest change first."""
    changed = (each for each in both if each.has_changed)
    return sorted(changed, key=lambda each: -abs(each.change_bytes or 0))


def _runs(each: Compared) -> str:
    a, b = each.a.dump.run_id, each.b.dump.run_id
    return f"run {a}" if a == b else f"from run {a} to run {b}"


def _facts(each: Compared) -> list[Fact]:
    """The peaks, the change and the cause."""
    change = each.change_bytes or 0
    tone = "bad" if change > 0 else "good" if change < 0 else ""
    cause = each.diff.said
    peaks = [
        Fact(f"peak_{name}", f"peak of {name.upper()}", side.text, side.peak_bytes, note)
        for name, side, note in (
            ("a", each.a, f"run {each.a.dump.run_id}"),
            ("b", each.b, f"run {each.b.dump.run_id}"),
        )
    ]
    return [
        *peaks,
        Fact("change", "change", each.change_text, each.change_bytes, each.share_text, tone),
        Fact("cause", "why", cause, is_wide=True),
    ]


def _largest(each: Compared) -> list[Fact]:
    """What a page of several modules says first: which one changed most."""
    change, peaks = each.change_bytes or 0, f"{each.a.text} → {each.b.text}"
    tone = "bad" if change > 0 else "good" if change < 0 else ""
    return [
        Fact("largest", "largest change", each.change_text, change, peaks, tone),
        Fact("largest-module", "changed most", each.diff.name, None, each.diff.cause, is_wide=True),
    ]


def _others(found: Diff, same: Sequence[Compared]) -> list[Text]:
    """A line for the modules that did not change, and for those of one side alone."""
    said: dict[str, list[str]] = {}
    for each in same:
        what = "the same in both" if each.diff.is_same else each.diff.cause
        said.setdefault(what, []).append(each.diff.name)
    for module in found.modules:
        if module.a is None or module.b is None:
            said.setdefault(module.cause, []).append(module.name)
    # Only the first letter changes: a cause names runs and arguments.
    return [
        Text(f"{what[:1].upper()}{what[1:]}: {_listed(names)}.") for what, names in said.items()
    ]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _parts(store: Store, each: Compared, suffix: str) -> list[Part]:
    """All that the page says of one module; `suffix` makes the charts' names its own."""
    if not each.has_changed:
        return [Text("Nothing differs: neither flags, nor figures, nor buffers.")]
    parts: list[Part] = []
    if each.is_estimated:
        parts.append(Text(_estimates(each), "warning"))
    if len(each.diff.causes) > 1 and each.diff.cause != "; ".join(each.diff.causes):
        parts.append(Text(f"All causes: {'; '.join(each.diff.causes)}."))
    if not each.has_peaks:
        parts.append(Text("A side without a known peak has nothing to compare.", "warning"))
    flags = flags_table(each)
    tables = [*figures_tables(each), *([] if flags is None else [flags])]
    if not each.has_peaks or not len(each.diff.metrics):
        return [*parts, *tables]
    a, b = each.a.dump.module_id, each.b.dump.module_id
    assert a is not None, "a dump with a peak has a module"
    assert b is not None, "a dump with a peak has a module"
    buffers = _in_memory(changed_buffers(store, a, b))
    changed = changed_owners(store, a, b, _KINDS)
    owners = {kind: _in_memory(rows) for kind, rows in changed.items()}
    parts.append(Beside(((_waterfall(each, buffers, owners, suffix),), tables)))
    parts += compared_maps(store, each, buffers, suffix)
    parts.append(changes_table(each, buffers, BUFFER, folded=False))
    return parts


def _in_memory(changes: pa.Table) -> pa.Table:
    """The changes in the main memory."""
    found = changes.filter(pc.equal(changes["memory_space"], 0))
    return found.drop_columns(["memory_space"])


def _waterfall(
    each: Compared, buffers: pa.Table, owners: Mapping[str, pa.Table], suffix: str
) -> Chart:
    """From peak A to peak B, by each of the kinds."""
    a, b = (
        Bar(f"peak of {name}, run {side.dump.run_id}", 0, side.peak_bytes or 0, True, mark)
        for name, side, mark in (
            ("A", each.a, each.a.is_estimated),
            ("B", each.b, each.b.is_estimated),
        )
    )
    kinds = {kind: bars(_owned(rows, OWNERS[kind]), a, b) for kind, rows in owners.items()}
    kinds[BUFFER] = bars(_buffer_names(buffers), a, b)
    tables = [changes_table(each, rows, kind, folded=True) for kind, rows in owners.items()]
    return waterfall_chart(kinds, each.memory, tables, f"waterfall{suffix}")


def _owned(changes: pa.Table, column: str) -> pa.Table:
    return pa.table({"owner": changes[column], "change_bytes": changes["change_bytes"]})


def _buffer_names(changes: pa.Table) -> pa.Table:
    """What became of each buffer, and which one it is, as an owner."""
    words = [pc.fill_null(changes[name], "") for name in ("what", "source", "operation", "shape")]
    names = pc.binary_join_element_wise(*words, " ")
    return pa.table({"owner": names, "change_bytes": changes["change_bytes"]})


def _estimates(each: Compared) -> str:
    which = [name for name, side in (("A", each.a), ("B", each.b)) if side.is_estimated]
    if len(which) == 2:
        return "A and B are estimated from HLO text alone: their figures carry the mark ≈."
    return (
        f"{which[0]} is estimated from HLO text alone, the other side is not: "
        "a part of the change can be the estimate's error. Estimated figures carry the mark ≈."
    )
