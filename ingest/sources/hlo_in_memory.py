"""A program that someone holds as HLO text: `compiled.as_text()` in a notebook."""

import hashlib
from dataclasses import dataclass

from ...schema import ids
from ...xla.parts import Parts
from ..outcomes import FileOutcome
from ..readers.hlo_text import header_name, read_hlo_text
from ..readers.lines import whole_lines
from .program import Identified, Key


@dataclass(frozen=True)
class TextProgram:
    """HLO text in memory; see `program.Program`."""

    text: bytes
    modified: float
    oom: bool = False

    @property
    def key(self) -> Key:
        """The program is called by its module's name."""
        name = header_name(self.text[:1000].decode(errors="replace")) or "module"
        return Key(".", name, name=name)

    @property
    def size_bytes(self) -> int:
        """The length of the text."""
        return len(self.text)

    def fingerprint(self) -> Identified:
        """Hash the text."""
        sha256 = hashlib.sha256(self.text).hexdigest()
        name = self.key.module_name
        file = FileOutcome("text", "hlo", len(self.text), sha256)
        return Identified(ids.module_id(name, [("hlo", sha256)]), name, [file])

    def read(self, identified: Identified, *, beside: bool = False) -> Parts | None:
        """Parse the text."""
        (file,) = identified.files
        with file.recording():
            hlo = read_hlo_text(whole_lines(self.text))
            file.pass_over(hlo.not_understood)
            return Parts(hlo=hlo)
        return None
