"""The peak by stack as a flame graph: widths are bytes, the outermost frame on top."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..queries.modules import FoundModule
from ..queries.result import Rows
from ..queries.stacks import Frame, Stacks, peak_rows, peak_stacks
from ..schema.readable import command, one_line
from ..schema.store import Store
from .module_spaces import Space
from .page import Html, Table, templates
from .sections.module_tables import listed

# The kinds of `Frame`, in the order of the legend; a kind is a class of the page's style.
_KINDS = {
    "mine": "your code",
    "library": "libraries",
    "module": "modules",
    "operation": "operations",
    "other": "what has no code",
}


def flame_graph(store: Store, found: FoundModule, space: Space) -> tuple[Html | Table, ...]:
    """The flame graph of a module's peak by Python stack and by modules, and its stacks as rows."""
    rows = peak_rows(store, found.module_id, space.memory_space)
    if not rows:
        return ()
    ways: dict[str, Stacks] = {
        name: peak_stacks(rows, by, unfold=unfold)
        for name, by, unfold in (
            ("call stack", "source", False),
            ("module", "scope", False),
            ("module, each layer", "scope", True),
        )
    }
    if ways["module"].keys() == ways["module, each layer"].keys():
        del ways["module, each layer"]
    strings: dict[str, int] = {}
    trees = {name: _tree(stacks, strings) for name, stacks in ways.items()}
    page = templates().get_template("flame.html")
    drawn = Html(
        page.render(title=f"Flame graph of {space.name} at the peak", ways=ways, kinds=_KINDS),
        scripts=("flame.js",),
        data={
            "flame": {
                "strings": list(strings),
                "kinds": list(_KINDS),
                "trees": trees,
                "mark": "≈" if space.is_estimated else "",
            }
        },
    )
    return drawn, _table(ways["call stack"], found)


def _tree(stacks: Stacks, strings: dict[str, int]) -> dict[str, Any]:
    """The frames as columns, numbered from the root, 0: a parent before its children."""
    root: dict[Frame, Any] = {}
    sizes: dict[int, int] = {id(root): sum(stacks.values())}
    for stack, size in stacks.items():
        below = root
        for frame in stack:
            below = below.setdefault(frame, {})
            sizes[id(below)] = sizes.get(id(below), 0) + size
    rows = list(_walked(Frame("", "other"), root, -1, sizes, [0]))

    def numbered(text: str) -> int:
        return strings.setdefault(one_line(text), len(strings))

    kinds = list(_KINDS)
    return {
        "name": [numbered(frame.text) for frame, *_ in rows],
        "file": [numbered(frame.file) for frame, *_ in rows],
        "kind": [kinds.index(frame.kind) for frame, *_ in rows],
        "parent": [parent for _, parent, _ in rows],
        "size_bytes": [size for *_, size in rows],
    }


def _walked(
    frame: Frame, below: dict[Frame, Any], parent: int, sizes: dict[int, int], count: list[int]
) -> Iterator[tuple[Frame, int, int]]:
    """Each frame with its parent's number and its bytes; the largest child first."""
    number, count[0] = count[0], count[0] + 1
    yield frame, parent, sizes[id(below)]
    for child, inner in sorted(below.items(), key=lambda each: -sizes[id(each[1])]):
        yield from _walked(child, inner, number, sizes, count)


def _table(stacks: Stacks, found: FoundModule) -> Table:
    total = sum(stacks.values())
    sizes = pa.array(stacks.values(), pa.int64())
    rows = {
        "counted_bytes": sizes,
        "share": pc.divide(sizes.cast(pa.float64()), float(total)),
        "stack": ["; ".join(frame.text for frame in stack) for stack in stacks],
    }
    all_of = command("owners", found.module_id, "--format", "collapsed")
    return Table(
        listed(Rows(pa.table(rows)), all_of), "The stacks as a table", name="stacks", folded=True
    )
