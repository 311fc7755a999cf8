"""Reads dumps as memhouse does, and keeps what each file says apart."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from memhouse.ingest import kinds
from memhouse.ingest.buffer_assignment import read_buffer_assignment
from memhouse.ingest.discover import Dump, find_dumps, is_wanted
from memhouse.ingest.hlo_text import read_hlo_text
from memhouse.ingest.lines import split_lines
from memhouse.ingest.live_range import read_live_range
from memhouse.ingest.module import Parts
from memhouse.ingest.sections import BUFFER_ASSIGNMENT, LIVE_RANGE, USED_VALUES, split_sections
from memhouse.ingest.sources import open_source
from memhouse.ingest.used_values import read_used_values


def find(path: Path) -> Iterator[tuple[str, Parts]]:
    """The modules under a path that have HLO text, with what their files say."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, lambda why: print(why, file=sys.stderr))
        dumps = find_dumps(files, lambda file, why: print(file.path, why, file=sys.stderr))
        for dump in dumps:
            if kinds.HLO in dump.files or kinds.OOM_HLO in dump.files:
                yield f"{dump.workload}/{dump.stem}", _read(dump)


def _read(dump: Dump) -> Parts:
    parts = Parts()
    kind = kinds.HLO if kinds.HLO in dump.files else kinds.OOM_HLO
    parts.hlo = read_hlo_text(split_lines(dump.files[kind].read()))
    for kind in kinds.ASSIGNMENT_KINDS:
        if kind not in dump.files:
            continue
        for part, section in split_sections(split_lines(dump.files[kind].read())).items():
            if part == BUFFER_ASSIGNMENT:
                parts.buffer_assignment = read_buffer_assignment(section)
            elif part == USED_VALUES:
                parts.used_values = read_used_values(section, definitions=False)
            elif part == LIVE_RANGE:
                parts.live_range = read_live_range(section)
    return parts
