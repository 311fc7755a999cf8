"""The outcomes of reading a program's files, and what an ingest tells."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..schema.store import Deleted
from ..xla.errors import DumpError
from ..xla.program import NotUnderstood, Unread

# Lines that tell what an ingest did.


def some_of(names: list[str]) -> str:
    """The distinct names, at most three of them."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return ", ".join(distinct[:3]) + more


def what_was_replaced(replaced: Deleted, source: str) -> str:
    """The line that says what a replaced run held."""
    (run_id,) = replaced.run_ids
    dropped = " and ".join(
        f"{number} {what}" if number == 1 else f"{number} {what}s"
        for number, what in ((replaced.dumps, "dump"), (replaced.modules, "module"))
    )
    return f"replaced run {run_id}: {dropped} of {source} dropped"


# The outcomes of reading a program's files, and the compiler's settings.

OK, PARTIAL, FAILED = "ok", "partial", "failed"
# How many things that are not understood a note names.
_NAMED = 3
# Only of a file: it was read but contradicts another part; the dump needs it but lacks it.
CONTRADICTS, MISSING = "contradicts", "missing"


@dataclass
class FileOutcome:
    """The outcome of reading a file; path: as in `dump_files`.

    holds: the parts in the file, by their names in messages.
    """

    path: str
    kind: str
    bytes: int | None = None
    sha256: str | None = None
    status: str = OK
    line: int | None = None
    message: str | None = None
    holds: tuple[str, ...] = ()

    def row(self, workload: str) -> dict[str, object]:
        """The row of `file_sets` without files_id, of a file of a dump of this workload."""
        name = self.path if workload == "." else self.path.removeprefix(f"{workload}/")
        is_within = workload == "." or name != self.path
        return {
            "name": name if is_within else f"/{name}",
            "kind": self.kind,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "status": self.status,
            "line": self.line,
            "message": self.message,
        }

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record a DumpError as the file's failure and suppress the exception."""
        try:
            yield
        except DumpError as error:
            self.fail(error)

    def fail(self, error: DumpError) -> None:
        """Record that the file cannot be read."""
        self.status, self.line, self.message = FAILED, error.line, str(error)

    def note(self, message: str, line: int | None = None) -> None:
        """Note what the file does not say; that is not a failure."""
        self.line = line if self.message is None else self.line
        self.message = message if self.message is None else f"{self.message}; {message}"

    def pass_over(self, newer: Sequence[NotUnderstood]) -> None:
        """Note what is not understood, the first things by name."""
        if not newer:
            return
        first = sorted(newer)[:_NAMED]
        omitted = [f"{len(newer) - _NAMED} more"] if len(newer) > _NAMED else []
        names = ", ".join([*(thing.description for thing in first), *omitted])
        self.note(f"not understood and passed over: {names}", first[0].line)

    def leave_out(self, unread: Sequence[Unread]) -> None:
        """Record what a damaged file does not say, if there is anything."""
        for left_out in unread:
            self.status = PARTIAL
            self.note(left_out.description, left_out.line)

    def contradict(self, message: str) -> None:
        """Record that the file contradicts another part."""
        self.status = CONTRADICTS
        self.note(message, self.line)


@dataclass
class Settings:
    """The compiler's settings of a dump; `flags` is None if none were dumped.

    device: device_kind, device_memory_bytes and topology as in `dumps`, as far as known.
    """

    flags: dict[str, str] | None = None
    device: dict[str, object] = field(default_factory=dict)
