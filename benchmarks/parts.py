"""Reads dumps as memhouse does, and yields the parts before they are joined."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.ingest.sources.program import Key
from memhouse.xla.parts import Parts


def find(path: Path) -> Iterator[tuple[Key, Parts]]:
    """The modules under a path that have HLO text, with what identifies them."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, lambda why: print(why, file=sys.stderr))
        for dump in find_dumps(files, lambda file, why: print(file.path, why, file=sys.stderr)):
            parts = dump.read(dump.fingerprint())
            if parts is not None and parts.hlo is not None:
                yield dump.key, parts
