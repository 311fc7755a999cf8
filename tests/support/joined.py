"""A module's rows, as ingest makes them of its parts."""

from memhouse.ingest.join import Module, Told, join_parts, work_out
from memhouse.ingest.sources.program import Key
from memhouse.xla.columns.parts import Parts


def joined(parts: Parts, key: Key) -> Module:
    """The module of these parts; the key is what the file names say."""
    changelist = int(key.compiler) if key.compiler else None
    found = work_out(Told(parts, key.platform, changelist))
    return join_parts(found)
