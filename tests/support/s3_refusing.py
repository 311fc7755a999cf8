"""An S3 server that refuses requests, with an answer of the test's choice, and notes them.

It runs in a process of its own: deltalake keeps Python's lock while it waits for an answer.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_SIGNED = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/")


@dataclass(frozen=True)
class Refusing:
    """The running server: its endpoint, and the file in which it notes who asks."""

    endpoint: str
    notes: Path

    def asked(self) -> set[tuple[str, str]]:
        """The access keys and regions of requests since the last call."""
        found = {(line.split()[0], line.split()[1]) for line in self.notes.read_text().splitlines()}
        self.notes.write_text("")
        return found


@contextmanager
def refusing(
    folder: Path, status: int = 403, code: str = "AccessDenied", behind: str = ""
) -> Iterator[Refusing]:
    """The server, for the time of the block; it answers with this status and this code of S3.

    What only reads is passed on to the server `behind`, if there is one.
    """
    notes = folder / "asked.txt"
    notes.touch()
    command = [sys.executable, __file__, str(notes), str(status), code, behind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield Refusing(f"http://127.0.0.1:{process.stdout.readline().strip()}", notes)
    finally:
        process.kill()
        process.communicate()


def _serve(notes: Path, status: int, code: str, behind: str) -> None:
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()

    class Handler(BaseHTTPRequestHandler):
        # A client that has something to send asks first, and waits for leave to go on.
        protocol_version = "HTTP/1.1"

        def refuse(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if found := _SIGNED.search(self.headers.get("Authorization", "")):
                with notes.open("a") as file:
                    file.write(f"{found[1]} {found[2]}\n")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/xml")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def read(self) -> None:
            if not behind:
                return self.refuse()
            connection = HTTPConnection(behind.removeprefix("http://"))
            connection.request(self.command, self.path, headers=dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            size = answer.getheader("Content-Length") if self.command == "HEAD" else len(content)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_HEAD = read  # noqa: N815
        do_PUT = do_POST = do_DELETE = refuse  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
