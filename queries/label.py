"""Labels of runs: which runs have which, and changing them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import dumps

from ..schema.errors import UsageError
from ..schema.store import Store
from .catalogue import statement
from .result import Rows, counted
from .runs import default_branch, require_runs

# Runs of the same values of these are one history.
_LINEAGE = ("branch", "suite")


def label(
    store: Store, runs: Sequence[str], labels: Mapping[str, str | None] | None = None
) -> Rows:
    """Set labels of runs; one that is None or empty is removed. The labels then.

    Columns: run, key, value. Raises UsageError, and then changes nothing.
    """
    if not runs:
        raise UsageError("name the runs to label", "runs")
    if "" in (labels or {}):
        raise UsageError("a label is KEY=VALUE", "labels")

    require_runs(store, *((run, "runs") for run in runs))
    if labels:
        store.label(runs, {key: value or None for key, value in labels.items()})
    found = store.rows(statement("labels.of_runs"), [list(runs)])
    return Rows(found, empty="without labels" if len(runs) > 1 else f"{runs[0]} has no labels")


def rename_label(store: Store, rename: str) -> list[str]:
    """Give all runs with a label another value of it; what to tell of it, a line each.

    rename: KEY=OLD:NEW; without OLD the runs that lack the label, without NEW it is removed. Runs
    that have the new value already come after, as those of a branch that was renamed do. Raises
    UsageError, and then changes nothing.
    """
    key, equals, values = rename.partition("=")
    old, colon, new = values.partition(":")
    if not (key and equals and colon) or old == new:
        raise UsageError(f"{rename!r} is not KEY=OLD:NEW, such as branch=master:main", "rename")
    labels = store.rows(statement("labels.of_key"), [key]).to_pylist()
    runs = [row["run_id"] for row in labels if row["label"] == old]
    if not runs:
        raise UsageError(f"no run has {key}={old}" if old else f"all runs have {key}", "rename")
    places = {
        value: [n for n, row in enumerate(labels) if row["label"] == value] for value in (old, new)
    }
    joined = places[new]
    if key in _LINEAGE and joined and joined[0] < places[old][-1]:
        raise UsageError(
            f"{key}={new} is no new name of {key}={old}: run {labels[joined[0]]['run_id']} has it, "
            f"before run {runs[-1]}",
            "rename",
        )
    store.label(runs, {key: new or None})
    told = f"labelled {counted(len(runs), 'run')}: {key}={new}"
    lines = [f"{told}, as {counted(len(joined), 'run')} had already" if joined else told]
    branches = {row["label"] for row in labels}
    was_default = key == "branch" and default_branch(branches, old) == old
    if was_default and default_branch({*branches, new} - {old}, "") != new:
        lines.append(
            f"other branches are held against {new} only if limits.toml has baseline = {dumps(new)}"
        )
    return lines


@contextmanager
def hint_at_branches(store: Store, labels: Mapping[str, str]) -> Iterator[list[str]]:
    """Runs get these labels in the block; after it the list holds what to tell of them.

    With the first branch, the runs without one have a history of their own.
    """
    hints: list[str] = []
    is_first = bool(labels.get("branch")) and not store.is_new and not _counted(store)["labelled"]
    yield hints
    if is_first and all(_counted(store).values()):
        hints.append(
            "runs without a branch are a history of their own: "
            "memhouse label --rename branch=:main joins them"
        )


def _counted(store: Store) -> dict[str, int]:
    """How many runs have a branch, and how many do not."""
    (counted,) = store.rows(statement("labels.branches")).to_pylist()
    return dict(counted)
