"""What happened to a series in a run: it grew, came, went, failed."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ...cells import counted, human_bytes, human_pct

# The same as the view `regressions`.
_GROWTH = 0.01


@dataclass(frozen=True)
class Event:
    """What happened to a series in a run.

    kind: grew, shrank, changed (another program of the same size), new, back, gone, failed or
    oom; module_ids: the modules then and now, where both are known; cause: why, in a line.
    """

    place: int
    run: str
    kind: str
    cause: str
    value_bytes: int | None = None
    change_bytes: int | None = None
    change_pct: float | None = None
    module_ids: tuple[int, int] | None = None
    is_estimated: bool = False
    is_accepted: bool = False
    is_regression: bool = False

    @property
    def is_step(self) -> bool:
        """Whether the figure changed."""
        return bool(self.change_bytes)

    @property
    def mark(self) -> str:
        """What stands before its figures: they may be estimates."""
        return "≈" if self.is_estimated else ""

    @property
    def change_text(self) -> str:
        """The change as a person reads it: `▲ +1.88 GiB (+443.0 %)`."""
        change = self.change_bytes or 0
        text = f"{'▲' if change > 0 else '▼'} {self.mark}{'+' if change > 0 else ''}"
        text += human_bytes(change)
        if self.change_pct is None:
            return text
        pct = human_pct(self.change_pct)
        return f"{text} ({pct}{' %' if pct[0] in '+-' else ''})"


def event_of(
    row: Mapping[str, Any], place: int, module_before: int | None, *, is_accepted: bool
) -> Event:
    """The step that a row of `trends` is; `module_before` is the module it is compared with."""
    change, missed = row["change_bytes"], row["missed_runs"]
    health = [f"the dump {row['status']}"] if row["status"] == "failed" else []
    health += ["out of memory"] if row["oom"] else []
    came = ["new"] if row["is_new"] else []
    came += [f"back after {counted(missed, 'missing run')}"] if missed else []
    kinds: dict[str, Hashable] = {
        "oom": row["oom"],
        "failed": row["status"] == "failed",
        "grew": (change or 0) > 0,
        "shrank": (change or 0) < 0,
        "new": row["is_new"],
        "back": missed,
    }
    a, b = module_before, row["module_id"]
    return Event(
        place,
        row["run_id"],
        next((kind for kind, holds in kinds.items() if holds), "changed"),
        row["cause"] or "; ".join(came + health),
        row["value_bytes"],
        change,
        row["change_pct"],
        (a, b) if a is not None and b is not None and change is not None else None,
        row["origin"] == "estimated",
        is_accepted,
        bool(row["content_changed"] and (change or 0) > _GROWTH * (row["previous_bytes"] or 0)),
    )
