"""The journal: everything that changed the warehouse."""

from ..schema.store import Store
from .catalogue import statement
from .questions import Newest, question
from .result import Rows


@question(example="memhouse log -n 10")
def log(store: Store, *, limit: Newest = None) -> Rows:
    """Show what changed the warehouse, the newest first.

    Each ingest, replacement, prune, label, accepted growth, compaction and upgrade is an entry,
    and stays one. The entries tell in which order runs entered.

    Columns: entry, entered_at (UTC), action, run, host, detail, by_whom, tool_version,
    reader_version.
    """
    return Rows(store.rows(statement("log"), [limit]), empty="nothing has changed it yet")
