"""What became of a recorded command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...schema.errors import MemhouseError

if TYPE_CHECKING:
    from ..pipeline import Summary


@dataclass
class Recorded:
    """What became of a command.

    status: its exit status, 128+N if signal N killed it; start: when it began; run_id: the run that
    holds what it compiled; labels: the run's labels; summary: of the ingest, None until it is
    done; notes: what to tell the user, one line each.
    """

    status: int
    run_id: str
    start: datetime
    labels: Mapping[str, str]
    summary: "Summary | None" = None
    notes: list[str] = field(default_factory=list)


class NotIngestedError(MemhouseError):
    """The command has run, but its dumps could not be ingested: they are still in `folder`.

    The cause is what went wrong; `recorded` is what is known of the command.
    """

    def __init__(self, recorded: Recorded, folder: Path) -> None:
        super().__init__(f"what was compiled is not ingested, but kept in {folder}")
        self.recorded = recorded
        self.folder = folder
