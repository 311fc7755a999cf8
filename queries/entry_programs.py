"""Entry programs, for which a workload is run, and helpers: see the view `_entry_programs`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..schema.readable import human_bytes
from .cells import counted

if TYPE_CHECKING:
    import pyarrow as pa


def helpers_line(peaks: Collection[int | None]) -> str:
    """What helpers of these peaks are, in a line: `47 helpers, at most 103.4 MiB`; empty if none.

    A peak is None for a helper of another run, whose figure is not among those asked for.
    """
    if not peaks:
        return ""
    known = [peak for peak in peaks if peak is not None]
    most = f", at most {human_bytes(max(known))}" if known else ""
    return f"{counted(len(peaks), 'helper')}{most}"


def without_helpers(rows: pa.Table) -> tuple[pa.Table, str]:
    """The rows of entry programs by their column `is_entry`, and what the helpers are, in a line.

    The rows have memory_space and peak_bytes; a helper is counted in memory space 0.
    """
    import pyarrow.compute as pc

    helpers = rows.filter(pc.and_(pc.invert(rows["is_entry"]), pc.equal(rows["memory_space"], 0)))
    return rows.filter(rows["is_entry"]), helpers_line(helpers["peak_bytes"].to_pylist())
