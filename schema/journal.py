"""The journal: an entry for everything that changed a warehouse, in the order of the changes.

An entry is written in the transaction or commit of its change. Stores number the entries.
"""

import getpass
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from . import arrow, clock
from .versions import READER_VERSION, TOOL_VERSION


def entry(
    action: str,
    detail: str,
    run_id: str | None = None,
    host: str | None = None,
    tool_version: str = TOOL_VERSION,
) -> dict[str, Any]:
    """A row of `journal`, of now and without its number."""
    return {
        "entered_at": clock.now(),
        "action": action,
        "run_id": run_id,
        "host": host,
        "detail": detail,
        "tool_version": tool_version,
        "reader_version": READER_VERSION,
        "user_name": _user(),
    }


def entries(*rows: dict[str, Any]) -> dict[str, pa.Table]:
    """Entries as the rows of a batch or change."""
    return {"journal": arrow.rows("journal", rows)}


def dropped(dumps: int) -> str:
    """The detail of a run that was dropped."""
    return f"dropped with {dumps} dump{'s' * (dumps != 1)}"


def label_entries(run_ids: Iterable[str], labels: Mapping[str, str | None]) -> dict[str, pa.Table]:
    """What is entered when these labels of each of these runs are set, or removed if None."""
    detail = ", ".join(f"{key}={value or ''}" for key, value in labels.items())
    return entries(*(entry("label", detail, run_id) for run_id in dict.fromkeys(run_ids)))


def numbered(rows: pa.Table, last: int) -> pa.Table:
    """Entries in their order, numbered on from the number of the last stored one."""
    place = rows.schema.get_field_index("entry")
    numbers = pa.array(range(last + 1, last + 1 + len(rows)), pa.int32())
    return rows.set_column(place, "entry", numbers)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # A user whom the machine does not know.
        return ""
