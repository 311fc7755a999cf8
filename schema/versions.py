"""The versions of the tool, of its readers and of its tables.

READER_VERSION grows whenever a reader or a rule gives other rows for the same dump: an ingest
then reads a dump again whose module an older reader stored. A warehouse whose tables are not those
of SCHEMA_VERSION, by their `layout`, is not opened.
"""

import hashlib
from functools import cache

try:
    from .._version import __version__ as _version
except ImportError:
    # A checkout that was pulled and not installed again.
    _version = "0.0"
TOOL_VERSION: str = _version

READER_VERSION = 7
SCHEMA_VERSION = 1


@cache
def layout() -> str:
    """A digest of the statements that create the tables of this memhouse."""
    from .ddl import create_tables

    return hashlib.sha256(create_tables().encode()).hexdigest()[:16]
