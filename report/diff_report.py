"""The report of a diff: what grew or shrank from A to B, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..queries.catalogue import statement
from ..queries.diff import (
    BUFFER,
    UNSET,
    Diff,
    Dump,
    ModuleDiff,
    changed_buffers,
    changed_owners,
    compared_figures,
    diff,
    with_sides,
)
from ..queries.owners import OWNERS
from ..queries.result import Rows, counted, mark_estimated, percent
from ..queries.timeline import timeline
from ..schema.readable import human_bytes
from ..schema.store import Store
from .address_map import Colouring, address_map, colourings
from .colours import CHANGES
from .memory_over_time import schedule_range, stacks_of
from .memory_timeline import height, memory_timeline
from .module_spaces import Space, main_memory, module_buffers, module_spaces
from .page import Beside, Chart, Fact, Part, Report, Section, Table, Text
from .waterfall import Bar, bars, waterfall_chart

# The two sides of a compared module: which dumps they are, and what their peaks are.

_ESTIMATED = "estimated"


@dataclass(frozen=True)
class Side:
    """A module in A or in B; peak_bytes is None where the dump has no figures."""

    dump: Dump
    peak_bytes: int | None
    platform: str | None
    is_estimated: bool

    @property
    def text(self) -> str:
        """The peak as a person reads it."""
        if self.peak_bytes is None:
            return "not known"
        return f"{'≈' if self.is_estimated else ''}{human_bytes(self.peak_bytes)}"


@dataclass(frozen=True)
class Compared:
    """A module that both A and B have, with its diff."""

    diff: ModuleDiff
    a: Side
    b: Side

    @property
    def has_peaks(self) -> bool:
        """Whether both peaks are known."""
        return self.a.peak_bytes is not None and self.b.peak_bytes is not None

    @property
    def is_estimated(self) -> bool:
        """Whether a peak, and with it the change, is an estimate."""
        return self.a.is_estimated or self.b.is_estimated

    @property
    def change_bytes(self) -> int | None:
        """How much the peak changes."""
        if self.a.peak_bytes is None or self.b.peak_bytes is None:
            return None
        return self.b.peak_bytes - self.a.peak_bytes

    @property
    def change_ratio(self) -> float | None:
        """The same over A's peak."""
        change = self.change_bytes
        return change / self.a.peak_bytes if change and self.a.peak_bytes else None

    @property
    def change_text(self) -> str:
        """The change as a person reads it."""
        change = self.change_bytes
        if change is None:
            return "not known"
        sign = "+" if change > 0 else "-" if change < 0 else ""
        return f"{'≈' if self.is_estimated else ''}{sign}{human_bytes(abs(change))}"

    @property
    def share_text(self) -> str:
        """The change in percent as a person reads it, or nothing."""
        return percent(self.change_ratio) if self.change_ratio else ""

    @property
    def has_changed(self) -> bool:
        """Whether something differs that a report can show."""
        found = self.diff
        return bool(len(found.flags) or len(found.metrics) or len(found.rows)) or (
            not self.has_peaks
        )

    @property
    def memory(self) -> str:
        """What the main memory is called, on both sides."""
        names = {main_memory(side.platform) for side in (self.a, self.b)}
        return names.pop() if len(names) == 1 else "memory"


def compared_sides(store: Store, modules: Sequence[ModuleDiff]) -> list[Compared]:
    """The modules that both A and B have, in their order, with their peaks in main memory."""
    both = [(found, found.a, found.b) for found in modules if found.a and found.b]
    ids = sorted({dump.dump_id for _, *dumps in both for dump in dumps if dump})
    rows = store.rows(statement("report.sides"), [ids]).to_pylist()
    known = {row["dump_id"]: row for row in rows}

    def side(dump: Dump) -> Side:
        row = known.get(dump.dump_id)
        if row is None:
            return Side(dump, None, None, False)
        estimated = row["origin"] == _ESTIMATED
        return Side(dump, row["peak_bytes"], row["platform"], estimated)

    return [Compared(found, side(a), side(b)) for found, a, b in both if a and b]


# A beside B over time: timelines and maps on one scale of bytes, coloured by what changed.

_CAME, _LEFT, _GREW, _SHRANK, _AS_BEFORE, _ELSEWHERE = CHANGES
# All other words mean that a buffer came to the peak of B, or left that of A.
_SIZED = {"grew": _GREW, "shrank": _SHRANK}


def compared_maps(store: Store, each: Compared, changes: pa.Table, suffix: str) -> list[Part]:
    """The timelines and maps of both sides, A beside B, in the main memory.

    changes: `changed_buffers` in the main memory; `suffix` makes the names of the charts their
    own: `address_map_a`, `memory_timeline_b` and so on.
    """
    sides = {"a": each.a, "b": each.b}
    spaces = {key: _space(store, side) for key, side in sides.items()}
    known = {key: space for key, space in spaces.items() if space is not None}
    if len(known) < len(sides):
        return [Text("Where the buffers are over time is not known of both sides: no maps.")]
    extent = max(height(space) for space in known.values())
    columns = [
        _column(store, key, sides[key], space, changes, extent, suffix)
        for key, space in known.items()
    ]
    _share_bytes([part for column in columns for part in column if isinstance(part, Chart)])
    note = Text(
        "Both sides have one scale of bytes, and zoom on it together; each is as wide as its own"
        " schedule. The colours say what became of the buffers of the peaks, the dashed lines.",
        "note",
    )
    return [note, Beside(columns)]


def _space(store: Store, side: Side) -> Space | None:
    """The main memory, if it is known when the buffers are there."""
    if side.dump.module_id is None:
        return None
    space = module_spaces(store, side.dump.module_id, side.dump.dump_id).get(0)
    return space if space and space.schedule_length and space.peak_bytes is not None else None


def _column(
    store: Store,
    key: str,
    side: Side,
    space: Space,
    changes: pa.Table,
    extent: int,
    suffix: str,
) -> list[Chart | Text]:
    """The timeline of a side and the map under it."""
    module_id = side.dump.module_id
    assert module_id is not None, "a side with a memory space has a module"
    buffers = module_buffers(store, module_id)
    times = schedule_range(space)
    stretches = timeline(store, module_id).table
    stacks = stacks_of(space, buffers)
    name = f"memory_timeline_{key}{suffix}"
    title = f"{key.upper()}, run {side.dump.run_id}"
    chart = memory_timeline(space, stacks, stretches, times, name, extent)
    scripts = (*chart.scripts, "compared_maps.js")
    occupied = f"{title}: occupied bytes of {space.name}"
    parts: list[Chart | Text] = [replace(chart, title=occupied, scripts=scripts)]
    if space.is_estimated:
        said = "is estimated: without a buffer assignment nothing has an address to draw."
        return [*parts, Text(f"{key.upper()} {said}", "note")]
    ways = (change_colours(buffers, changes, key, space), *colourings(buffers))
    chart = address_map(buffers, space, times, f"address_map_{key}{suffix}", ways, extent)
    note = "A rectangle is a buffer: as wide as its life, as high as its size, at its address."
    return [*parts, replace(chart, title=f"{title}: addresses of {space.name}", note=note)]


def _share_bytes(charts: list[Chart]) -> None:
    """Let charts of one kind zoom together on bytes."""
    for kind in ("memory_timeline", "address_map"):
        models = [chart.model for chart in charts if str(chart.model.name).startswith(kind)]
        for model in models[1:]:
            model.y_range = models[0].y_range


def change_colours(buffers: pa.Table, changes: pa.Table, key: str, space: Space) -> Colouring:
    """What became of each buffer of `module_buffers` of the side `key`, as colours.

    changes: `changed_buffers`; what is at the peak and in none of its rows takes as many bytes
    as before.
    """
    names = list(CHANGES)
    start, end = buffers["start_time"].to_numpy(), buffers["end_time"].to_numpy()
    at_peak = (start <= space.peak_time) & (space.peak_time <= end)
    codes = np.where(at_peak, names.index(_AS_BEFORE), names.index(_ELSEWHERE))
    known = _keys(buffers["allocation_index"], buffers["value_id"])
    order = np.argsort(known)
    members = changes[f"{key}_members"].combine_chunks()
    each = pc.list_flatten(members)
    if len(each) and len(known):
        wanted = _keys(pc.struct_field(each, "allocation_index"), pc.struct_field(each, "value_id"))
        place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
        rows = order[place]
        is_there = known[rows] == wanted
        what = changes["what"].take(pc.list_parent_indices(members)).to_pylist()
        side = _CAME if key == "b" else _LEFT
        became = np.array([names.index(_SIZED.get(word, side)) for word in what], np.int64)
        codes[rows[is_there]] = became[is_there]
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, codes, buffers["peak_counted_bytes"].to_numpy())
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    places = np.zeros(len(names), np.int64)
    places[used] = np.arange(len(used))
    return Colouring(
        "change",
        "what changed",
        [names[i] for i in used],
        [CHANGES[names[i]] for i in used],
        places[codes],
        sums[used].tolist(),
    )


def _keys(allocations: pa.ChunkedArray, values: pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each allocation and value; a value that is not known has one too."""
    value = pc.fill_null(values.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    allocation = allocations.cast(pa.int64()).to_numpy(zero_copy_only=False)
    numbers: NDArray[np.int64] = allocation * (1 << 32) + value
    return numbers


# The tables of a diff's report: modules, figures, flags, and what changes at the peaks.

# Rows of a table; the command lists all.
_SHOWN = 100
# What a person wants to know of a buffer, in order.
_BUFFER_COLUMNS = (
    *("change_bytes", "what", "A_bytes", "B_bytes", "shape", "source", "operation"),
    *("pass", "category", "value", "is_guess"),
)


def modules_table(modules: Sequence[Compared]) -> Table:
    """A row per module that both A and B have, with its peaks and its cause."""
    rows = [
        {
            "module": each.diff.name,
            "A_bytes": each.a.peak_bytes,
            "B_bytes": each.b.peak_bytes,
            "change_bytes": each.change_bytes,
            "change_ratio": each.change_ratio,
            "cause": each.diff.said,
            "origin": "estimated" if each.is_estimated else "dumped",
        }
        for each in modules
    ]
    schema = pa.schema(
        [("module", pa.string()), ("change_bytes", pa.int64()), ("change_ratio", pa.float64())]
        + [(name, pa.int64()) for name in ("A_bytes", "B_bytes")]
        + [("cause", pa.string()), ("origin", pa.string())]
    )
    shown = pa.Table.from_pylist(rows[:_SHOWN], schema=schema)
    return Table(
        Rows(shown, _caption(len(rows), len(shown), "module", "memhouse diff A B")),
        "The peaks of all modules",
        "modules",
    )


def figures_tables(module: Compared) -> list[Table]:
    """The figures that differ: those of the main memory, and folded those of other spaces."""
    figures = _figures(module)
    is_main = pc.equal(figures["memory_space"], 0)
    main = figures.filter(is_main).drop_columns(["memory_space"])
    if len(main):
        # The peak is what the page is about: it comes first, before larger changes.
        is_peak = pc.equal(main["figure"], "peak")
        main = pa.concat_tables([main.filter(is_peak), main.filter(pc.invert(is_peak))])
    others = figures.filter(pc.invert(is_main))
    empty = f"all figures of {module.memory} are the same"
    tables = [Table(Rows(main, empty=empty), f"Figures of {module.memory} that differ", "figures")]
    if len(others):
        tables.append(
            Table(Rows(others), "Figures of other memory spaces that differ", folded=True)
        )
    return tables


def _figures(module: Compared) -> pa.Table:
    """A and B side by side in all memory spaces, the change first."""
    table = compared_figures(module.diff)
    if not len(table):
        return table
    order = ["memory_space", "figure", "change_bytes", "change_ratio", "A_bytes", "B_bytes"]
    names = pc.replace_substring(table["figure"], "_", " ")
    return _marked(table.set_column(1, "figure", names).select(order), module)


def flags_table(module: Compared) -> Table | None:
    """The compiler's flags that differ, if they do."""
    rows = module.diff.flags.arrow()
    if not len(rows):
        return None
    shown = rows.slice(0, _SHOWN)
    table = pa.table(
        {
            "flag": shown["flag"],
            "A": pc.fill_null(shown["a_value"], UNSET),
            "B": pc.fill_null(shown["b_value"], UNSET),
        }
    )
    return Table(
        Rows(table, _caption(len(rows), len(shown), "flag", "memhouse diff A B --wide")),
        f"{counted(len(rows), 'flag')} that {'differs' if len(rows) == 1 else 'differ'}",
        folded=len(rows) > 8,
    )


def changes_table(module: Compared, changes: pa.Table, by: str, *, folded: bool) -> Table:
    """What changes at the peaks by `by`: the rows of `changed_buffers` or `changed_owners`."""
    shown = with_sides(changes.slice(0, _SHOWN))
    if by == "buffer":
        place = shown.column_names.index("shape")
        shown = shown.set_column(place, "shape", _short_shapes(shown["shape"]))
        shown = shown.select([name for name in _BUFFER_COLUMNS if name in shown.column_names])
    else:
        owner = shown.column_names[0 if shown.column_names[0] != "change_bytes" else 1]
        names = [owner, "change_bytes", "A_bytes", "B_bytes", "A_buffers", "B_buffers"]
        shown = shown.select(names)
    command = "memhouse diff A B --wide" + ("" if by == "buffer" else f" --by {by}")
    caption = _caption(len(changes), len(shown), "change", command)
    return Table(
        Rows(_marked(shown, module), caption, "nothing at the peak differs"),
        f"What changes at the peak by {by}",
        f"by-{by}",
        folded,
    )


def _short_shapes(shapes: pa.ChunkedArray) -> pa.ChunkedArray:
    """The shapes; of a tuple the number of its arrays."""
    arrays = pc.count_substring(pc.replace_substring_regex(shapes, r".* → ", ""), "[")
    counts = pc.binary_join_element_wise("(", arrays.cast(pa.string()), " arrays)", "")
    return pc.if_else(pc.starts_with(shapes, "("), counts, shapes)


def _caption(count: int, shown: int, what: str, command: str) -> str:
    if shown == count:
        return ""
    return f"The first {shown} of {count} {what}s; `{command}` lists all."


def _marked(table: pa.Table, module: Compared) -> pa.Table:
    """The table with its estimated columns marked as such."""
    marks = {
        "A_bytes": module.a.is_estimated,
        "B_bytes": module.b.is_estimated,
        "change_bytes": module.is_estimated,
    }
    return mark_estimated(table, [name for name, is_marked in marks.items() if is_marked])


# The report of a diff: what grew or shrank from A to B, and why.

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
    found = diff(store, a, b, workload=workload, by=_KINDS[0])
    both = compared_sides(store, found.entries)
    changed = _changed(both)
    same = [each for each in both if not each.has_changed]
    others = _others(found, same)
    if len(changed) == 1 or len(found.entries) == len(both) == 1:
        (only,) = changed or both
        parts = [*_parts(store, only, ""), *(others if len(found.entries) > 1 else ())]
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
            Text(f"{said} that changed less: in the table alone. --workload gives charts.", "note")
        )
    sections = [
        Section(
            each.diff.name,
            _parts(store, each, f"_{place}" if place > 1 else ""),
            facts=_facts(each),
        )
        for place, each in enumerate(changed[:_CHARTED], 1)
    ]
    alone = len(found.entries) - len(both)
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
    for place, each in enumerate(_changed(compared_sides(store, found.entries))[:most], 1):
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
    for module in found.entries:
        if module.a is None or module.b is None:
            said.setdefault(module.cause, []).append(module.name)
    # Only the first letter changes: a cause names runs and arguments.
    texts = [f"{what[:1].upper()}{what[1:]}: {_listed(names)}." for what, names in said.items()]
    return list(map(Text, [*texts, *filter(None, [found.helpers])]))


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
    if not each.has_peaks:
        parts.append(Text("A side without a known peak has nothing to compare.", "warning"))
    flags = flags_table(each)
    tables = [*figures_tables(each), *([] if flags is None else [flags])]
    if len(each.diff.causes) > 1:
        ledger = each.diff.causes.arrow().select(["change_bytes", "term", "source"])
        tables.insert(0, Table(Rows(ledger), "Causes"))
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
        return "A and B are estimated without a buffer assignment: their figures carry the mark ≈."
    return (
        f"{which[0]} is estimated without a buffer assignment, the other side is not: "
        "a part of the change can be the estimate's error. Estimated figures carry the mark ≈."
    )
