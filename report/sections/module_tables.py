"""The tables of a module's report: padding, what is saved for backward, donations, kernels."""

from collections.abc import Iterator

from ...queries.catalogue import statement
from ...queries.donations import donations
from ...queries.kernels import kernels
from ...queries.modules import FoundModule
from ...queries.result import Rows
from ...schema.readable import command, human_bytes
from ...schema.store import Store
from ..module_spaces import Space
from ..page import Section, Table, Text

PLACE = 2
_LISTED = 200


def sections(store: Store, found: FoundModule, space: Space) -> Iterator[Section]:
    """A section for each list that has rows, and a sentence where it matters that one has none."""
    yield _padding(store, found, space.memory_space)
    yield _saved(store, found, space.memory_space)
    yield from _donations(store, found, space.memory_space)
    yield from _kernels(store, found)


def listed(rows: Rows, all_by: str) -> Rows:
    """The first rows, without columns that are empty in all rows.

    The caption says how many rows there are if there are more, and which command lists all.
    """
    table = rows.table
    known = [name for name in table.column_names if table[name].null_count < len(table)]
    is_cut = len(table) > _LISTED
    caption = f"The first {_LISTED} of {len(table):,}. All: {all_by}" if is_cut else ""
    return Rows(table.select(known).slice(0, _LISTED), caption, rows.empty)


def _padding(store: Store, found: FoundModule, memory_space: int) -> Section:
    rows = Rows(store.rows(statement("report.padded"), [found.module_id, memory_space]))
    title = "Padding"
    if not len(rows):
        return Section(title, (Text("No value takes more than its elements do."),))
    note = (
        "Tiles that elements do not fill. Values that are live at the peak come first; values that "
        "share memory share its padding."
    )
    all_of = command("sql", f"SELECT * FROM padding WHERE dump_id = {found.dump_id}")
    return Section(title, (Table(listed(rows, all_of), name="padding"),), note)


def _saved(store: Store, found: FoundModule, memory_space: int) -> Section:
    rows = Rows(store.rows(statement("saved.residuals"), [found.module_id, memory_space]))
    title = "Saved for the backward pass"
    if not len(rows):
        return Section(title, (Text("The forward pass keeps nothing for a backward pass."),))
    mark = "≈" if found.origin == "estimated" else ""
    sizes = rows.table["size_bytes"].to_pylist()
    live = rows.table["live_at_peak"].to_pylist()
    at_peak = sum(size for size, is_live in zip(sizes, live, strict=True) if is_live)
    note = (
        f"{len(rows):,} tensors, {mark}{human_bytes(sum(sizes))}; those live at the peak take "
        f"{mark}{human_bytes(at_peak)}. What is large and idle around the peak is worth computing "
        "again. Idle times count positions in the schedule."
    )
    query = f"SELECT * FROM saved_for_backward WHERE dump_id = {found.dump_id}"
    all_of = command("sql", query)
    return Section(title, (Table(listed(rows, all_of), name="saved"),), note)


def _donations(store: Store, found: FoundModule, memory_space: int) -> Iterator[Section]:
    rows = donations(store, found.module_id, run=found.run_id, memory_space=memory_space)
    if len(rows):
        note = "Arguments whose memory a result could take, and donations that save nothing."
        options = ("--space", memory_space, "-n", len(rows))
        all_of = command("donations", found.module_id, *options)
        yield Section("Donations", (Table(listed(rows, all_of), name="donations"),), note)


def _kernels(store: Store, found: FoundModule) -> Iterator[Section]:
    rows = kernels(store, found.module_id, run=found.run_id)
    if len(rows):
        note = (
            "What each kernel takes for itself while it runs, beside its limit; at least that "
            "where only its blocks and scratch are known."
        )
        all_of = command("kernels", found.module_id)
        yield Section("Kernels", (Table(listed(rows, all_of), name="kernels"),), note)
