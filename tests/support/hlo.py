"""Programs for tests, from HLO text."""

from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.columns.bridge import plain_program
from memhouse.xla.columns.bridge_h import read_hlo_text
from memhouse.xla.columns.program import number_program
from memhouse.xla.program import Program


def program_of(text: str) -> Program:
    """The program of an HLO text."""
    hlo = read_hlo_text(split_lines(text.encode()))
    return plain_program(number_program(hlo), hlo)
