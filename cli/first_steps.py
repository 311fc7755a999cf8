"""`memhouse` alone: what the warehouse holds, and what to type."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..queries.result import counted
from ..schema.errors import WarehouseBusyError, WarehouseError
from ..schema.lake.storage import is_lake
from ..schema.readable import command, human_bytes, one_line
from .options import DEFAULT_DB, find_settings, reading
from .render.text import print_commands, print_prose, print_text

if TYPE_CHECKING:
    from ..schema.stores.base import Store

_FILL = (
    ("memhouse demo", "five commands on real dumps"),
    ("memhouse record -- python train.py", "run it, and keep what XLA compiles"),
    ("memhouse ingest DUMPS", "dumps that are already there"),
)
_ASK = (
    ("peaks", (), "what each module needs"),
    ("owners", ("MODULE",), "which lines of Python own it"),
    ("trends", (), "what grew, when and why"),
    ("advise", ("MODULE",), "what to change first"),
)
_ALL = "`memhouse --help` lists all commands."


def show_first_steps() -> None:
    """Print what the warehouse that is set, or this folder's, holds, and commands that fit."""
    db = os.environ.get("MEMHOUSE_DB") or find_settings().db or DEFAULT_DB
    commands: Sequence[tuple[str, str]] = _FILL
    if not is_lake(db) and "://" not in db and not Path(db).exists():
        print_prose(f"There is no warehouse at {db} yet. Type one of these:")
    else:
        try:
            with reading(db) as store:
                held, largest = _held(store)
            if largest is not None:
                commands = [
                    (command(asked, names=[largest] * len(names)), said)
                    for asked, names, said in _ASK
                ]
        except WarehouseError as error:
            held = [str(error)]
            if isinstance(error, WarehouseBusyError):
                commands = [(command(asked, names=names), said) for asked, names, said in _ASK]
        for line in held:
            print_prose(line)
    print_text("")
    print_commands(commands)
    print_text(f"\n{_ALL}")


def _held(store: "Store") -> tuple[list[str], str | None]:
    """What a warehouse holds, in lines, and the module of the largest peak, as it is typed."""
    from ..queries.peaks import peaks as all_peaks
    from ..queries.runs import runs as all_runs

    runs = all_runs(store).table.to_pylist()
    if not runs:
        return [f"{store.name} holds no runs yet. Type one of these:"], None
    found = [f"{store.name}: {counted(len(runs), 'run')}, the newest {one_line(runs[-1]['run'])}."]
    peaks = all_peaks(store).table.to_pylist()
    if not peaks or peaks[0]["peak_bytes"] is None:
        return found, None
    largest = peaks[0]
    mark = "≈" if largest["origin"] == "estimated" else ""
    name = one_line(f"{largest['workload']}/{largest['module']}")
    found.append(
        f"The largest peak now: {mark}{human_bytes(largest['peak_bytes'])}, {name} "
        f"of run {one_line(largest['run'])}."
    )
    return found, name
