"""The two sides of a compared module: which dumps they are, and what their peaks are."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....schema.stores.base import Store
from ...catalogue import statement
from ...cells import human_bytes, human_pct
from ...diff import Dump, ModuleDiff
from ..module.module_spaces import main_memory

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
    def change_pct(self) -> float | None:
        """The same in percent of A's peak."""
        change = self.change_bytes
        return 100 * change / self.a.peak_bytes if change and self.a.peak_bytes else None

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
        change = self.change_pct
        if not change:
            return ""
        text = human_pct(change)
        return text if text.startswith("\N{MULTIPLICATION SIGN}") else f"{text} %"

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
    rows = store.rows(statement("report_sides"), [ids]).to_pylist()
    known = {row["dump_id"]: row for row in rows}

    def side(dump: Dump) -> Side:
        row = known.get(dump.dump_id)
        if row is None:
            return Side(dump, None, None, False)
        estimated = row["origin"] == _ESTIMATED
        return Side(dump, row["peak_bytes"], row["platform"], estimated)

    return [Compared(found, side(a), side(b)) for found, a, b in both if a and b]
