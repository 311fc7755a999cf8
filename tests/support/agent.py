"""An agent: the SDK's client, which asks a server in this process, or the real `memhouse mcp`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .command import MEMHOUSE

# What "under 4 KB" means.
MOST_BYTES = 4096


@dataclass(frozen=True)
class Reply:
    """What a tool answered: its text, what that says, and whether it is an error."""

    text: str
    said: dict[str, Any]
    failed: bool

    def rows(self, part: str) -> list[dict[str, Any]]:
        """The rows of a part, each with its columns' names."""
        found = self.said[part]
        return [dict(zip(found["columns"], row, strict=True)) for row in found.get("rows", [])]


@dataclass
class Agent:
    """Asks the tools of a server."""

    client: Any
    portal: Any

    def ask(self, tool: str, **arguments: Any) -> Reply:
        """The answer, which is JSON and small, whatever it says."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        (content,) = result.content
        assert result.structured_content is None
        assert len(content.text.encode()) < MOST_BYTES
        return Reply(content.text, json.loads(content.text), bool(result.is_error))

    def error(self, tool: str, **arguments: Any) -> str:
        """What is said of a question that is refused."""
        reply = self.ask(tool, **arguments)
        assert reply.failed, reply.text
        return str(reply.said["error"])

    def tools(self) -> dict[str, Any]:
        """The tools by name."""
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}


@contextmanager
def agent(db: Path | str, stderr: Path) -> Iterator[Agent]:
    """An agent of the real command, over stdio; what the server says on stderr goes to a file."""
    from mcp import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=str(MEMHOUSE), args=["mcp", "--db", str(db)])
    with stderr.open("w") as errlog, _agent_of(stdio_client(server, errlog=errlog)) as found:
        yield found


@contextmanager
def agent_here(db: Path | str, macros: Sequence[str] = ()) -> Iterator[Agent]:
    """An agent of a server in this process."""
    from memhouse.mcp_server.serve import server_of

    with _agent_of(server_of(str(db), macros)) as found:
        yield found


@contextmanager
def _agent_of(server: Any) -> Iterator[Agent]:
    from anyio.from_thread import start_blocking_portal
    from mcp import Client

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server)) as client,
    ):
        yield Agent(client, portal)


def exact_bytes(cell: str) -> int:
    """The bytes that a size in an answer says: 306.98 MiB (321888256 B)."""
    return int(cell.rpartition("(")[2].removesuffix(")").removesuffix(" B"))
