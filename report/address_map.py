"""The map of a module's memory: a rectangle per buffer, its life across and its addresses up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    IndexFilter,
    LinearAxis,
    Range1d,
    Span,
)
from bokeh.plotting import figure
from numpy.typing import NDArray

from ..queries.result import Rows
from ..schema.readable import one_line
from .colours import CATEGORIES, PASSES, RANKED, REST
from .figures import house_figure, in_bytes, in_positions
from .memory_timeline import MARGINS, height
from .module_spaces import Space
from .page import Chart, Html, Table, differences, packed, templates, whole

# The ways to colour the map of a module, and the colours of each.

_NEARLY_ALL = 0.9
_TITLES = {
    "pass": "pass",
    "role": "role",
    "scope": "scope",
    "source": "source line",
    "category": "category",
    "element_type": "data type",
}
_NOT_KNOWN = {
    "pass": "no pass is known",
    "role": "no role is known",
    "scope": "no scope is known",
    "source": "no source line is known",
    "category": "no category is known",
    "element_type": "tuples and tables",
}


@dataclass(frozen=True)
class Colouring:
    """A way to colour a map.

    key: for scripts; title: what it says; names: what is told apart; colours: of each name;
    codes: the place in `names` of each row of the table of buffers; peak_bytes: what each name
    takes of the peak.
    """

    key: str
    title: str
    names: Sequence[str]
    colours: Sequence[str]
    codes: NDArray[np.int64]
    peak_bytes: Sequence[int]


def colourings(buffers: pa.Table) -> tuple[Colouring, ...]:
    """The colourings of `module_buffers`: by pass, role, scope, source, category and data type.

    The first is the first that tells something, by pass where none does.
    """
    ways = [colouring(buffers, column) for column in _TITLES]
    best = next(filter(_tells, ways), ways[0])
    return (best, *(way for way in ways if way is not best))


def _tells(way: Colouring) -> bool:
    """Whether no single name takes nearly all of the peak, as arguments do in a decoding step."""
    return max(way.peak_bytes, default=0) <= _NEARLY_ALL * sum(way.peak_bytes)


def colouring(buffers: pa.Table, column: str) -> Colouring:
    """One of these. The names are in order of what they take of the peak."""
    encoded = buffers[column].combine_chunks().dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    codes = encoded.indices.cast(pa.int64()).fill_null(len(names) - 1)
    codes = codes.to_numpy(zero_copy_only=False)
    at_peak = _sums(codes, buffers["peak_counted_bytes"].to_numpy(), len(names))
    life = buffers["end_time"].to_numpy().astype(np.int64) + 1 - buffers["start_time"].to_numpy()
    areas = _sums(codes, buffers["size_bytes"].to_numpy() * life, len(names))
    known = np.array([name not in (None, "") for name in names])
    order = np.lexsort([-areas, -at_peak, ~known])
    order = order[np.bincount(codes, minlength=len(names))[order] > 0]
    place = np.zeros(len(names), np.int64)
    place[order] = np.arange(len(order))
    texts = [one_line(names[i] or _NOT_KNOWN[column]) for i in order]
    return Colouring(
        column,
        _TITLES[column],
        texts,
        _colours([names[i] for i in order], {"pass": PASSES, "category": CATEGORIES}.get(column)),
        place[codes],
        at_peak[order].tolist(),
    )


def _sums(codes: NDArray[np.int64], numbers: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, codes, numbers)
    return sums


def _colours(names: Sequence[str | None], fixed: Mapping[str, str] | None) -> list[str]:
    """The fixed colours, or else the ranked ones for the first; what has no name is grey."""
    if fixed is not None:
        return [fixed.get(name or "", REST) for name in names]
    ranked = [*RANKED, *[REST] * len(names)]
    return [ranked[i] if name else REST for i, name in enumerate(names)]


# The rectangles of the map of addresses over time, and what stands for those too small to see.

Numbers = NDArray[np.int64]

# A buffer is small if a map of this many rows of pixels would not give it a whole one.
ROWS = 1000
# Small buffers are merged if they begin and end in the same cell of a grid this fine.
_CELLS = 250


@dataclass(frozen=True)
class Rectangles:
    """A rectangle per buffer that takes bytes, the large before those that may lie on them.

    row: of the table of buffers; left, right: from which position to before which; bottom, top:
    addresses; is_small: too small to see in the whole map.
    """

    row: Numbers
    left: Numbers
    right: Numbers
    bottom: Numbers
    top: Numbers
    is_small: NDArray[np.bool_]

    @property
    def area(self) -> Numbers:
        """Bytes times positions."""
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Merged:
    """Rectangles that stand for small ones of like life and place: as large as they are together.

    group: the merged rectangle of each small one, in the order of the rectangles; count and
    size_bytes: how many there are in each, and the sum of their sizes. The first `throughout`
    stand for neighbours that are there throughout, and cover exactly these.
    """

    left: Numbers
    right: Numbers
    bottom: NDArray[np.float64]
    top: NDArray[np.float64]
    group: Numbers
    count: Numbers
    size_bytes: Numbers
    throughout: int


def rectangles(buffers: pa.Table, schedule_length: int, extent_bytes: int) -> Rectangles:
    """The rectangles of `module_buffers` in a map that is `extent_bytes` high."""
    size = buffers["size_bytes"].to_numpy()
    left = buffers["start_time"].to_numpy().astype(np.int64)
    right = np.minimum(buffers["end_time"].to_numpy().astype(np.int64) + 1, schedule_length)
    row = np.flatnonzero((size > 0) & (right > left))
    row = row[np.argsort(-size[row] * (right - left)[row], kind="stable")]
    bottom = buffers["address"].to_numpy()[row]
    return Rectangles(
        row, left[row], right[row], bottom, bottom + size[row], size[row] * ROWS < extent_bytes
    )


def merged(found: Rectangles, buffers: pa.Table, schedule_length: int, extent_bytes: int) -> Merged:
    """What stands for the small rectangles.

    Neighbours that are there throughout, arguments for example, become one rectangle. Temps are
    merged if they are in one allocation and begin, end and lie near one another. Their rectangle
    has their first time, last time and lowest address, and its area is the sum of theirs.
    """
    small = np.flatnonzero(found.is_small)
    left, right = found.left[small], found.right[small]
    bottom, top = found.bottom[small], found.top[small]
    size = top - bottom
    row = found.row[small]
    categories = np.asarray(buffers["category"])
    temp = (categories == "temp")[row]
    group = np.empty(len(small), np.int64)

    time_cell = max(schedule_length // _CELLS, 1)
    byte_cell = max(extent_bytes // _CELLS, 1)
    times = schedule_length // time_cell + 1

    # Those that are there throughout: as long as the next begins where one ends.
    fixed = np.flatnonzero(~temp)
    fixed = fixed[np.argsort(bottom[fixed], kind="stable")]
    category = np.unique(categories, return_inverse=True)[1][row[fixed]]
    breaks = (
        (bottom[fixed][1:] != top[fixed][:-1])
        | (category[1:] != category[:-1])
        | (bottom[fixed][1:] // byte_cell != bottom[fixed][:-1] // byte_cell)
    )
    group[fixed] = np.concatenate([[0], np.cumsum(breaks)])[: len(fixed)]

    temps = np.flatnonzero(temp)
    allocation = np.unique(buffers["allocation_index"].to_numpy()[row[temps]], return_inverse=True)[
        1
    ]
    keys = bottom[temps] // byte_cell
    keys = (keys * times + left[temps] // time_cell) * times + right[temps] // time_cell
    keys = keys * (allocation.max(initial=0) + 1) + allocation
    of_temp = np.unique(keys, return_inverse=True)[1]
    throughout = int(group[fixed].max()) + 1 if len(fixed) else 0
    group[temps] = of_temp + throughout

    count = np.bincount(group)
    first = np.full(len(count), schedule_length, np.int64)
    last, lowest = np.zeros_like(first), np.full(len(count), np.iinfo(np.int64).max)
    sizes, areas = np.zeros_like(first), np.zeros_like(first)
    np.minimum.at(first, group, left)
    np.maximum.at(last, group, right)
    np.minimum.at(lowest, group, bottom)
    np.add.at(sizes, group, size)
    np.add.at(areas, group, size * (right - left))
    floor = lowest.astype(np.float64)
    ceiling = floor + areas / (last - first)
    return Merged(first, last, floor, ceiling, group, count, sizes, throughout)


# The map of a module's memory: a rectangle per buffer, its life across and its addresses up.

_HOVERED = ("size_bytes", "padding_bytes", "start_time", "end_time", "last_use_time")
_TOLD = ("value", "shape", "op_name", "source")
_GROUPS = {
    "argument": "arguments",
    "output": "outputs",
    "constant": "constants",
    "other": "other",
    "temp": "temps",
}
# A group of allocations has its name beside it if it takes this part of the map.
_NAMED = 0.08
_LISTED = 12
_TELL = "if (typeof memhouse !== 'undefined') memhouse.onMap?.(cb_obj)"


def address_map(
    buffers: pa.Table,
    space: Space,
    times: Range1d,
    name: str = "address_map",
    ways: Sequence[Colouring] | None = None,
    extent_bytes: int | None = None,
) -> Chart:
    """The map of the buffers of `module_buffers` in a memory space that has a schedule.

    times: the range that the charts of a report share; ways: what it can be coloured by, the
    first at first, or else by pass, role, scope and so on; extent_bytes: how high the map is
    if not as the space needs.

    Small buffers are drawn as one where they cannot be told apart, and each once there is room.
    Scripts find the figure by `name`, its source by `map_rectangles`; those of `address_map_a`
    by `map_a_rectangles`.
    """
    ways = colourings(buffers) if ways is None else ways
    extent = extent_bytes or height(space)
    length = space.schedule_length or 0
    found = rectangles(buffers, length, extent)
    together = merged(found, buffers, length, extent)
    plot = house_figure(
        name,
        x_label="position in the schedule",
        y_label="address, bytes",
        height=480,
        zoom="both",
        x_range=times,
        y_range=Range1d(0, extent, bounds=(0, extent), min_interval=512),
        **MARGINS,
    )
    codes = [(way.codes[found.row], _largest(way.codes, found, together)) for way in ways]
    _draw(plot, name, buffers, found, together, [_packed_colours(ways[0])[c] for c in codes[0]])
    in_bytes(plot.yaxis)
    in_positions(plot.xaxis)
    _name_groups(plot, buffers, extent)
    if space.peak_time is not None:
        plot.add_layout(
            Span(
                location=space.peak_time + 0.5,
                dimension="height",
                line_dash="dashed",
                line_width=1.5,
                tags=["ink"],
                level="overlay",
            )
        )
    if space.device_memory_bytes is not None and space.device_memory_bytes <= extent:
        plot.add_layout(
            Span(
                location=space.device_memory_bytes,
                dimension="width",
                line_dash="dotted",
                line_width=1.5,
                tags=["ink"],
                level="overlay",
            )
        )
    plot.js_on_event("mousemove", CustomJS(code=_TELL))
    plot.js_on_event("mouseleave", CustomJS(code=_TELL))
    plot.js_on_event("tap", CustomJS(code=_TELL))
    rows = buffers.select([*_TOLD, *_HOVERED]).take(found.row)
    return Chart(
        f"Addresses of {space.name} over the schedule",
        plot,
        note=_note(space, extent),
        tables=(_table(ways),),
        controls=Html(templates().get_template("map_colour.html").render(name=name, ways=ways)),
        below=Html(templates().get_template("map_legend.html").render(name=name)),
        scripts=("columns.js", "address_map.js"),
        data={
            name: {
                "kind": "address_map",
                "schedule_length": length,
                "extent_bytes": extent,
                "rows": packed(rows),
                "merged": {
                    "count": together.count.tolist(),
                    "size_bytes": together.size_bytes.tolist(),
                },
                "ways": {
                    way.key: {
                        "names": list(way.names),
                        "colours": list(way.colours),
                        "peak_bytes": list(way.peak_bytes),
                        "codes": differences(of_one),
                        "merged_codes": differences(of_merged),
                    }
                    for way, (of_one, of_merged) in zip(ways, codes, strict=True)
                },
            }
        },
    )


def _draw(
    plot: figure,
    name: str,
    buffers: pa.Table,
    found: Rectangles,
    together: Merged,
    colours: list[np.ndarray],
) -> None:
    """The rectangles: the large ones, the small ones or what stands for them, and what is lit."""
    prefix = name.replace("address_map", "map")
    sides = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
    exact = ColumnDataSource(
        {
            "left": found.left.astype(np.int32),
            "right": found.right.astype(np.int32),
            "bottom": found.bottom.astype(np.float64),
            "top": found.top.astype(np.float64),
            "value_id": whole(buffers["value_id"])[found.row].astype(np.int32),
            "colour": colours[0],
        },
        name=f"{prefix}_rectangles",
    )
    stand_ins = ColumnDataSource(
        {
            "left": together.left.astype(np.int32),
            "right": together.right.astype(np.int32),
            "bottom": together.bottom,
            "top": together.top,
            "colour": colours[1],
        },
        name=f"{prefix}_merged",
    )
    # What is there throughout stays under the small ones that it stands for: each of these alone
    # is lower than a row of pixels, which would let the paper shine through.
    for part, source, rows in (
        ("large", exact, np.flatnonzero(~found.is_small)),
        ("throughout", stand_ins, np.arange(together.throughout)),
        ("small", exact, np.flatnonzero(found.is_small)),
        ("merged", stand_ins, np.arange(together.throughout, len(together.count))),
    ):
        plot.quad(
            **sides,
            source=source,
            fill_color="colour",
            # A script outlines them where few are in sight.
            line_color=None,
            line_width=0.5,
            line_alpha=0.4,
            name=f"{name}_{part}",
            # All small ones are drawn once a script sees that there is room for them.
            visible=part != "small",
            view=CDSView(filter=IndexFilter(rows.tolist())),
        )
    lit = ColumnDataSource({side: [] for side in sides}, name=f"{prefix}_lit")
    quads = plot.quad(**sides, source=lit, fill_color=None, line_width=2, name=f"{name}_lit")
    quads.glyph.tags = ["ink"]


def _packed_colours(way: Colouring) -> np.ndarray:
    """The colours as numbers, red first and opaque, as bokeh reads them."""
    return np.array([int(f"{colour[1:]}ff", 16) for colour in way.colours], np.uint32)


def _largest(codes: Numbers, found: Rectangles, together: Merged) -> Numbers:
    """Which name takes most of each merged rectangle, in bytes times positions."""
    small = codes[found.row[found.is_small]]
    most = np.zeros(len(together.count), np.int64)
    if not len(small):
        return most
    pairs, place = np.unique(together.group * (small.max() + 1) + small, return_inverse=True)
    areas = np.zeros(len(pairs), np.int64)
    np.add.at(areas, place.reshape(-1), found.area[found.is_small])
    group, code = np.divmod(pairs, small.max() + 1)
    # Of each group the last one assigned stays: that with the largest area.
    order = np.argsort(areas, kind="stable")
    most[group[order]] = code[order]
    return most


def _name_groups(plot: figure, buffers: pa.Table, extent: int) -> None:
    """What the allocations hold, on an axis at the right, where there is room for the name."""
    begins = pc.subtract(buffers["address"], buffers["offset_bytes"])
    ends = pc.add(begins, buffers["allocation_bytes"])
    grouped = (
        pa.table({"category": buffers["category"], "begin": begins, "end": ends})
        .group_by("category")
        .aggregate([("begin", "min"), ("end", "max")])
        .to_pylist()
    )
    names = {}
    for group in grouped:
        begin, end = group["begin_min"], group["end_max"]
        if end - begin >= extent * _NAMED:
            names[(begin + end) / 2] = _GROUPS[group["category"]]
        if begin > 0:
            plot.add_layout(Span(location=begin, dimension="width", tags=["muted"], line_width=1))
    axis = LinearAxis(
        ticker=FixedTicker(ticks=list(names)),
        major_label_overrides=names,
        major_label_orientation="vertical",
        minor_tick_line_color=None,
        major_tick_line_color=None,
    )
    plot.add_layout(axis, "right")


def _note(space: Space, extent: int) -> str:
    device = space.device_memory_bytes
    lines = "the dashed line is the peak"
    if device is not None and device <= extent:
        lines += ", the dotted one the device's memory"
    return (
        "A rectangle is a buffer: as wide as its life, as high as its size, at its address."
        f" What is empty below others is lost to packing; {lines}. Drag to zoom in on both"
        " charts, click a buffer to pin it."
    )


def _table(ways: Sequence[Colouring]) -> Table:
    """What each name takes of the peak, the largest of each way to colour."""
    rows = []
    for way in ways:
        entries = list(zip(way.names, way.peak_bytes, strict=True))
        total = sum(way.peak_bytes)
        shown, rest = entries[:_LISTED], entries[_LISTED:]
        if rest:
            shown.append((f"{len(rest)} more", sum(size for _, size in rest)))
        rows += [
            {
                "by": way.title,
                "name": name,
                "peak_bytes": size,
                "share": size / total if total else None,
            }
            for name, size in shown
        ]
    return Table(
        Rows(pa.Table.from_pylist(rows), "What takes the peak, by each way to colour the map"),
        "The peak as a table",
        folded=True,
    )
