"""Programs for tests, from HLO text."""

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.program import Program


def program_of(text: str) -> Program:
    """The program of an HLO text."""
    return read_hlo_text(split_lines(text.encode()))
