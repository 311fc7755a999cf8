"""Labels of runs: which runs have which, and changing them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..schema.errors import UsageError
from ..schema.stores.base import Store
from .catalogue import statement
from .lists import require_runs
from .result import Rows


def label(
    store: Store, runs: Sequence[str], labels: Mapping[str, str | None] | None = None
) -> Rows:
    """Set labels of runs; one that is None or empty is removed. The labels then.

    Columns: run, key, value. Raises UsageError, and then changes nothing.
    """
    if not runs:
        raise UsageError("name the runs to label", "runs")
    require_runs(store, *((run, "runs") for run in runs))
    if labels:
        if "" in labels:
            raise UsageError("a label is KEY=VALUE", "labels")
        store.label(runs, {key: value or None for key, value in labels.items()})
    found = store.rows(statement("labels"), [list(runs)])
    return Rows(found, empty="without labels" if len(runs) > 1 else f"{runs[0]} has no labels")


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
            "memhouse label RUN branch=main joins them"
        )


def _counted(store: Store) -> dict[str, int]:
    """How many runs have a branch, and how many do not."""
    (counted,) = store.rows(statement("labelled_runs")).to_pylist()
    return dict(counted)
