"""The tables of a diff's report: modules, figures, flags, and what changes at the peaks."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...cells import counted, mark_estimated
from ...result import Rows
from ..page import Table
from .compared_sides import Compared

# Rows of a table; the command lists all.
_SHOWN = 100
# What a person wants to know of a buffer, in order.
_BUFFER_COLUMNS = (
    *("change_bytes", "what", "A_bytes", "B_bytes", "shape", "source", "operation"),
    *("pass", "category", "value", "is_guess"),
)
_UNSET = "unset"


def modules_table(modules: Sequence[Compared]) -> Table:
    """A row per module that both A and B have, with its peaks and its cause."""
    rows = [
        {
            "module": each.diff.name,
            "A_bytes": each.a.peak_bytes,
            "B_bytes": each.b.peak_bytes,
            "change_bytes": each.change_bytes,
            "change_pct": each.change_pct,
            "cause": each.diff.said,
            "origin": "estimated" if each.is_estimated else "dumped",
        }
        for each in modules
    ]
    schema = pa.schema(
        [("module", pa.string()), ("change_bytes", pa.int64()), ("change_pct", pa.float64())]
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
    """A and B side by side in all memory spaces."""
    rows = module.diff.metrics.arrow()
    if not len(rows):
        return pa.table({"memory_space": pa.array([], pa.int64())})
    a, b = rows["a_bytes"], rows["b_bytes"]
    share = pc.divide(
        pc.multiply(rows["change_bytes"].cast(pa.float64()), 100.0),
        pc.if_else(pc.equal(a, 0), None, a).cast(pa.float64()),
    )
    names = pc.replace_substring_regex(rows["metric"], "_bytes$", "")
    table = pa.table(
        {
            "memory_space": rows["memory_space"],
            "figure": pc.replace_substring(names, "_", " "),
            "change_bytes": rows["change_bytes"],
            "change_pct": share,
            "A_bytes": a,
            "B_bytes": b,
        }
    )
    return _marked(table, module)


def flags_table(module: Compared) -> Table | None:
    """The compiler's flags that differ, if they do."""
    rows = module.diff.flags.arrow()
    if not len(rows):
        return None
    shown = rows.slice(0, _SHOWN)
    table = pa.table(
        {
            "flag": shown["flag"],
            "A": pc.fill_null(shown["a_value"], _UNSET),
            "B": pc.fill_null(shown["b_value"], _UNSET),
        }
    )
    return Table(
        Rows(table, _caption(len(rows), len(shown), "flag", "memhouse diff A B --wide")),
        f"{counted(len(rows), 'flag')} that {'differs' if len(rows) == 1 else 'differ'}",
        folded=len(rows) > 8,
    )


def changes_table(module: Compared, changes: pa.Table, by: str, *, folded: bool) -> Table:
    """What changes at the peaks by `by`: the rows of `changed_buffers` or `changed_owners`."""
    shown = _beside(changes.slice(0, _SHOWN))
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


def _beside(changes: pa.Table) -> pa.Table:
    """The rows with A and B as a person calls them."""
    names = {"a_bytes": "A_bytes", "b_bytes": "B_bytes"}
    names |= {"a_buffers": "A_buffers", "b_buffers": "B_buffers"}
    return changes.rename_columns([names.get(name, name) for name in changes.column_names])


def _marked(table: pa.Table, module: Compared) -> pa.Table:
    """The table with its estimated columns marked as such."""
    marks = {
        "A_bytes": module.a.is_estimated,
        "B_bytes": module.b.is_estimated,
        "change_bytes": module.is_estimated,
    }
    return mark_estimated(table, [name for name, is_marked in marks.items() if is_marked])
