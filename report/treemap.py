"""The owners of a module's peak as rectangles whose areas are bytes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import squarify
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, Range1d

from ..queries.catalogue import statement
from ..queries.modules import FoundModule
from ..queries.owners import owners
from ..queries.result import Rows, without_layout
from ..queries.stacks import PART_OF_NAME, folded_steps
from ..schema.readable import one_line
from ..schema.store import Store
from .colours import RANKED, REST
from .figures import house_figure
from .module_spaces import Space
from .page import Chart, Html, Table, templates

# What fills memory at the peak as a tree of owners: by scope, by source line or by role.

# Of an owner so many children are shown by themselves, and only those that can be seen.
_SHOWN = 40
_ALWAYS_SHOWN = 8
_SMALLEST_SHARE = 1 / 1500
# Deeper owners are one: a name of thousands of parts would be thousands of levels to click through.
_DEEPEST = 64

_Buffer = Mapping[str, Any]


@dataclass
class Owner:
    """An owner of memory: its bytes are those of its children, if there are any.

    name: what to call it within its parent; size_bytes; buffers: how many it owns; children: the
    largest first; detail: of a buffer, the value that it holds.
    """

    name: str
    size_bytes: int = 0
    buffers: int = 0
    children: list["Owner"] = field(default_factory=list)
    detail: str = ""


def owner_tree(buffers: Sequence[_Buffer], by: str, *, unfold: bool = False) -> Owner:
    """The tree of what is counted of the buffers, by `scope`, `source` or `role`.

    Small owners are children of one that is called `n more`. Repeated layers are one owner, unless
    `unfold`.
    """
    root = _Branch("peak")
    paths = [(buffer["fold"] or "", buffer["module_path"] or "") for buffer in buffers]
    folded = {} if unfold else folded_steps(paths)
    for buffer, path in zip(buffers, paths, strict=True):
        at = root
        steps = folded.get(path) or path[1].split("/")
        for key, name in islice(PATHS[by](buffer, steps), _DEEPEST):
            at = at.branches.setdefault(key, _Branch(name))
        at.leaves.append(_leaf(buffer))
    tree = root.owner()
    tree.children = [_without_chains(child) for child in tree.children]
    return _capped(tree)


@dataclass
class _Branch:
    name: str
    branches: dict[str, "_Branch"] = field(default_factory=dict)
    leaves: list[Owner] = field(default_factory=list)

    def owner(self) -> Owner:
        children = [*(branch.owner() for branch in self.branches.values()), *self.leaves]
        return _parent(self.name, children)


def _parent(name: str, children: list[Owner]) -> Owner:
    children.sort(key=lambda child: -child.size_bytes)
    size = sum(child.size_bytes for child in children)
    return Owner(name, size, sum(child.buffers for child in children), children)


def _leaf(buffer: _Buffer) -> Owner:
    guess = "?" if buffer["is_guess"] else ""
    shape = without_layout(buffer["shape"] or "")
    if buffer["kind"] == "arguments" and buffer["op_name"]:
        name, detail = buffer["op_name"], f"{shape} {buffer['value'] or ''}"
    else:
        name, detail = f"{shape} {buffer['value'] or ''}", f"{buffer['op_name'] or ''}"
    return Owner(
        f"{name.strip() or '(no name)'}{guess}", buffer["counted_bytes"], 1, [], detail.strip()
    )


def _without_chains(owner: Owner) -> Owner:
    """An owner of one child is that child, called by both names."""
    if len(owner.children) == 1:
        (child,) = owner.children
        has_name = child.name.startswith(owner.name)
        name = child.name if has_name else f"{owner.name} / {child.name}"
        merged = Owner(name, child.size_bytes, child.buffers, child.children, child.detail)
        return _without_chains(merged)
    owner.children = [_without_chains(child) for child in owner.children]
    return owner


def _capped(owner: Owner) -> Owner:
    """The owner with its small children in one child `n more`, which can be entered too."""
    children = owner.children
    seen = sum(child.size_bytes >= owner.size_bytes * _SMALLEST_SHARE for child in children)
    shown = min(max(seen, _ALWAYS_SHOWN), _SHOWN)
    if len(children) > shown + 1:  # One more is shown itself.
        rest = _paged(children[shown:], shown + 1)
        more = _parent(f"{len(children) - shown} more", rest)
        owner.children = [*map(_capped, [*children[:shown], more])]
    else:
        owner.children = [*map(_capped, children)]
    return owner


def _paged(children: list[Owner], first: int) -> list[Owner]:
    """Children as pages of them if they are many, so that each is a few steps away."""
    if len(children) <= _SHOWN:
        return children
    size = max(_SHOWN, -(-len(children) // _SHOWN))
    return [
        _parent(f"{first + at} to {first + at + len(page) - 1}", page)
        for at in range(0, len(children), size)
        for page in [children[at : at + size]]
    ]


def _path_by_scope(buffer: _Buffer, steps: Sequence[str]) -> Iterable[tuple[str, str]]:
    kind = buffer["kind"]
    if kind.endswith("arguments"):
        yield from _named(f"({kind})")
        yield from _named(buffer["role"] or "(role not known)")
        yield from _argument(buffer)
    else:
        yield from _scope(buffer, steps)


def _path_by_source(buffer: _Buffer, steps: Sequence[str]) -> Iterable[tuple[str, str]]:
    file, line = buffer["source_file"], buffer["source_line"]
    if not file and (library := buffer["library_file"]):
        if buffer["module_path"]:
            yield from _scope(buffer, steps)
        else:
            yield from _named(f"{library}:{buffer['library_line']}")
        return
    if not file:
        yield from _named(f"({buffer['kind']})")
        yield from _argument(buffer)
        return
    short = re.split(r"[/\\]", file)[-1] or file
    # Files of one name in different folders are different owners.
    yield file, short
    if buffer["function"]:
        yield from _named(buffer["function"])
    yield f"line {line}", f"{short}:{line}"


def _path_by_role(buffer: _Buffer, steps: Sequence[str]) -> Iterable[tuple[str, str]]:
    yield from _named(buffer["role"] or "(not known)")
    if buffer["kind"].endswith("arguments"):
        yield from _argument(buffer)
    else:
        yield from _scope(buffer, steps)


def _scope(buffer: _Buffer, steps: Sequence[str]) -> Iterable[tuple[str, str]]:
    for step in steps:
        yield f"scope {step}", step or "(no scope)"
    yield from _named(buffer["operation"] or "(not known)")


def _argument(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    """The names of what holds an argument: p and p['layers'] of p['layers'][0]."""
    name = ""
    for part in PART_OF_NAME.findall(buffer["op_name"] or "")[:-1]:
        name += part
        yield name, name


def _named(name: str) -> Iterable[tuple[str, str]]:
    yield name, name


PATHS: Mapping[str, Callable[[_Buffer, Sequence[str]], Iterable[tuple[str, str]]]] = {
    "scope": _path_by_scope,
    "source": _path_by_source,
    "role": _path_by_role,
}


# What fills memory at the peak as a treemap: a rectangle an owner, which can be entered.
#
# The layouts are made here, of every owner that can be entered and for a wide and a narrow page;
# the page's script shows one of them at a time.

# The sizes of the layouts in pixels; the page stretches the width to its own.
_HEIGHT = 480
_WIDTHS = {"wide": 1180, "narrow": 350}
_HEADER = 18
# A rectangle needs this width and height to show its children, level by level.
_ROOM = (44, 110)
_LISTED = 200
_INKS = ("#14171b", "#ffffff")
# How a rectangle is drawn, as the page's script knows it.
_WHOLE, _HEADED, _FRAME, _INNER = range(4)
_HOVER = "return memhouse.treemap?.told(special_vars.index)[format] ?? '';"

_Rect = tuple[float, float, float, float]


def treemap_chart(store: Store, found: FoundModule, space: Space) -> Chart | None:
    """The treemap of a module's peak by scope, source and role; None if no peak is known."""
    parameters = [found.module_id, space.memory_space]
    buffers = store.rows(statement("treemap"), parameters).to_pylist()
    if not buffers:
        return None
    strings: dict[str, int] = {}
    trees = {by: _drawn(owner_tree(buffers, by), strings) for by in PATHS}
    if any(buffer["fold"] != buffer["module_path"] for buffer in buffers):
        trees["scope, each layer"] = _drawn(owner_tree(buffers, "scope", unfold=True), strings)
    height = _HEIGHT
    plot = house_figure(
        "treemap",
        x_label="",
        y_label="",
        height=height,
        x_range=Range1d(0, _WIDTHS["wide"]),
        y_range=Range1d(height, 0),
        min_border=0,
    )
    plot.axis.visible = plot.grid.visible = False
    plot.toolbar_location = None
    plot.tools = []
    tiles = ColumnDataSource(
        {key: [] for key in ("left", "top", "right", "bottom", "fill", "ink", "owner", "label")},
        name="treemap_tiles",
    )
    edges = {"left": "left", "top": "top", "right": "right", "bottom": "bottom"}
    drawn = plot.quad(
        **edges, source=tiles, fill_color="fill", line_color="#ffffff", name="treemap_quads"
    )
    plot.text(
        x="left",
        y="top",
        text="label",
        text_color="ink",
        source=tiles,
        x_offset=4,
        y_offset=3,
        text_baseline="top",
        text_font=value("sans-serif"),
        text_font_size="12px",
        text_line_height=1.15,
    )
    chosen = ColumnDataSource({key: [] for key in edges}, name="treemap_chosen")
    plot.quad(
        **edges, source=chosen, fill_color=None, line_color="#7a808a", line_width=3, tags=["ink"]
    )
    hover = HoverTool(
        renderers=[drawn],
        tooltips=[(name, f"@owner{{{name}}}") for name in ("owner", "size", "holds")],
        formatters={"@owner": CustomJSHover(code=_HOVER)},
    )
    plot.add_tools(hover)
    tables = tuple(
        Table(
            _owned(store, found, space, by),
            f"The peak by {by} as a table",
            name=f"owners-by-{by}",
            folded=True,
        )
        for by in ("source", "scope", "role")
    )
    return Chart(
        f"What fills {space.name} at the peak",
        plot,
        "Areas within a frame are in proportion to bytes. A click enters an owner.",
        tables,
        Html(templates().get_template("treemap.html").render(ways=list(trees))),
        scripts=("treemap.js",),
        data={
            "treemap": {
                "strings": list(strings),
                "trees": trees,
                "mark": "≈" if space.is_estimated else "",
                "widths": _WIDTHS,
                "inks": _INKS,
                "height": height,
            }
        },
    )


def _owned(store: Store, found: FoundModule, space: Space, by: str) -> Rows:
    rows = owners(
        store,
        found.module_id,
        run=found.run_id,
        by=by,
        memory_space=space.memory_space,
        limit=_LISTED,
    )
    return Rows(rows.table, empty=rows.empty)


def _drawn(tree: Owner, strings: dict[str, int]) -> dict[str, Any]:
    """A tree's owners as columns, numbered from the root, 0, and the layouts of what can be
    entered: of each rectangle the owner, how to draw it, left, top, right and bottom.
    """
    found = list(_walked(tree))
    numbers = {id(owner): number for number, (owner, *_) in enumerate(found)}

    def numbered(text: str) -> int:
        return strings.setdefault(one_line(text), len(strings))

    return {
        "name": [numbered(owner.name) for owner, *_ in found],
        "detail": [numbered(owner.detail) for owner, *_ in found],
        "size_bytes": [owner.size_bytes for owner, *_ in found],
        "buffers": [owner.buffers for owner, *_ in found],
        "parent": [-1 if parent is None else numbers[id(parent)] for _, parent, _ in found],
        "colour": [numbered(colour) for *_, colour in found],
        "ink": [_ink(colour) for *_, colour in found],
        "layouts": {
            shape: {
                numbers[id(owner)]: [
                    number
                    for child, kind, rect in _layout(owner, width)
                    for number in (numbers[id(child)], kind, *(round(edge, 1) for edge in rect))
                ]
                for owner, *_ in found
                if owner.children
            }
            for shape, width in _WIDTHS.items()
        },
    }


def _walked(tree: Owner) -> Iterator[tuple[Owner, Owner | None, str]]:
    """Each owner with its parent and its colour: that of its top-level owner, in shades."""
    yield tree, None, REST
    for place, child in enumerate(tree.children):
        colour = RANKED[place] if place < len(RANKED) else REST
        yield child, tree, colour
        yield from _below(child, colour)


def _below(parent: Owner, colour: str) -> Iterator[tuple[Owner, Owner | None, str]]:
    last = max(len(parent.children) - 1, 1)
    for place, child in enumerate(parent.children):
        yield child, parent, _lighter(colour, 0.08 + 0.42 * place / last)
        yield from _below(child, colour)


def _layout(owner: Owner, width: float) -> Iterator[tuple[Owner, int, _Rect]]:
    """The rectangles of an owner's children, and within these where there is room."""
    for child, rect in _squares(owner.children, (0, 0, width, _HEIGHT)):
        if not _has_room(child, rect, _ROOM[0]):
            yield child, _WHOLE, rect
            continue
        yield child, _FRAME, rect
        yield from _headed(child, rect, _ROOM[1:])


def _headed(owner: Owner, rect: _Rect, rooms: Sequence[int]) -> Iterator[tuple[Owner, int, _Rect]]:
    """A header with an owner's name, and under it its children, so many levels as `rooms`."""
    left, top, right, bottom = rect
    yield owner, _HEADED, (left, top, right, top + _HEADER)
    for child, inner in _squares(owner.children, (left, top + _HEADER, right, bottom)):
        if rooms and _has_room(child, inner, rooms[0]):
            yield from _headed(child, inner, rooms[1:])
        else:
            yield child, _INNER, inner


def _has_room(owner: Owner, rect: _Rect, side: int) -> bool:
    left, top, right, bottom = rect
    return bool(owner.children) and right - left >= side and bottom - top >= side


def _squares(children: Sequence[Owner], rect: _Rect) -> Iterator[tuple[Owner, _Rect]]:
    left, top, right, bottom = rect
    width, height = right - left, bottom - top
    # Entered children are in order of size, but `n more` can be larger than those before it.
    ordered = sorted(children, key=lambda child: -child.size_bytes)
    scale = width * height / sum(child.size_bytes for child in ordered)
    sizes = [child.size_bytes * scale for child in ordered]
    for child, at in zip(ordered, squarify.squarify(sizes, left, top, width, height), strict=True):
        yield child, (at["x"], at["y"], at["x"] + at["dx"], at["y"] + at["dy"])


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def _lighter(colour: str, share: float) -> str:
    mixed = (round(channel + (255 - channel) * share) for channel in _channels(colour))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _ink(colour: str) -> int:
    """Which ink is read best on a colour: 0 dark, 1 light."""
    parts = [channel / 255 for channel in _channels(colour)]
    red, green, blue = (p / 12.92 if p < 0.04 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # The contrast with white against that with the dark ink.
    return int(1.05 / (light + 0.05) > (light + 0.05) / 0.0585)
