"""A program that someone holds as an HloProto: in a file, in a part of one or in memory."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from ...schema import ids
from ...xla.errors import DumpError
from ...xla.parts import Parts
from ...xla.spaces import name_spaces
from ..outcomes import OK, FileOutcome, Settings
from ..readers.hlo_proto import read_hlo_proto
from ..readers.proto_identity import identify_hlo_proto
from .files import SourceFile, unreadable
from .program import Identified, Key

_NO_ASSIGNMENT = "it has no buffer assignment, as programs from JAX's compilation cache"
# What only the compiler of this platform writes into an instruction's backend_config.
_MARKS = {"gpu": b"operation_queue_id", "tpu": b"scoped_memory_configs"}


def platform_of(content: bytes) -> str | None:
    """The platform that an HloProto was compiled for, None if it does not say."""
    return next((platform for platform, mark in _MARKS.items() if mark in content), None)


@dataclass(frozen=True)
class FilePart:
    """A part of a plain file on disk, to be read when it is needed."""

    location: Path
    start: int
    size: int

    def read(self) -> bytes:
        """The bytes. Raises DumpError."""
        try:
            with self.location.open("rb") as raw:
                raw.seek(self.start)
                content = raw.read(self.size)
        except OSError as error:
            raise unreadable(error) from None
        if len(content) < self.size:
            raise DumpError(f"it is cut short at byte {self.start + len(content)}: copy it again")
        return content


# What a program's bytes may be in.
StoredBytes = bytes | FilePart | SourceFile


@dataclass(frozen=True)
class HloProtoProgram:
    """One HloProto; see `program.Program`. path and kind are those of `dump_files`."""

    key: Key
    held: StoredBytes
    path: str
    kind: str
    modified: float
    settings: Settings = field(default_factory=Settings)
    oom: bool = False

    @property
    def size_bytes(self) -> int:
        """The length of the message."""
        return len(self.held) if isinstance(self.held, bytes) else self.held.size

    def fingerprint(self) -> Identified:
        """Hash the message in its canonical form: its bytes differ from one writer to the next."""
        file = FileOutcome(self.path, self.kind)
        name, content = self.key.module_name, None
        with file.recording():
            content = self.held if isinstance(self.held, bytes) else self.held.read()
            file.bytes = len(content)
            try:
                identity = identify_hlo_proto(content)
            except DumpError:
                file.sha256 = hashlib.sha256(content).hexdigest()
                raise
            file.sha256 = identity.content
            name = identity.module_name
            # Of an early stage it is told that nothing can be worked out.
            if not identity.has_assignment and identity.is_scheduled:
                file.message = _NO_ASSIGNMENT
        module_id = ids.module_id(name, [("hlo-proto", file.sha256)])
        return Identified(module_id, name, [file], self.settings, content)

    def read(self, identified: Identified) -> Parts | None:
        """Parse the message."""
        (file,) = identified.files
        if file.status != OK:
            return None
        with file.recording():
            program, assignment = read_hlo_proto(identified.content)
            parts = Parts(assignment, program=program, is_binary=True)
            name_spaces(parts, self.key.platform)
            return parts
        return None
