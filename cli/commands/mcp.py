"""`memhouse mcp`: serve the warehouse to agents."""

from ...mcp_server.serve import serve
from ..parameters import DEFAULT_DB, Db
from ..settings import find_settings

EXAMPLE = "memhouse mcp --db memhouse.duckdb"


def mcp(db: Db = DEFAULT_DB) -> None:
    """Serve the warehouse to agents, by the Model Context Protocol.

    The server only reads, and opens the warehouse for each question. Your agent's client starts it:
    see docs/mcp.md. Requires `pip install 'memhouse[mcp]'`.
    """
    serve(db, find_settings().macros)
