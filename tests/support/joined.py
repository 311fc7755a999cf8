"""A module's rows, as ingest builds them from its parts."""

from memhouse.ingest.derive import derive
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.rows import Module
from memhouse.ingest.sources.program import Key
from memhouse.xla.parts import Parts


def joined(parts: Parts, key: Key) -> Module:
    """The module of these parts; the key is what the file names state."""
    changelist = int(key.compiler) if key.compiler else None
    return build_module(derive(parts, key.platform, changelist), key.platform)
