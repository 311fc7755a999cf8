"""GitHub's API on this machine, as far as comments on a pull request need it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "octo/zoo"
BOT = "github-actions[bot]"


@dataclass
class FakeGitHub:
    """The comments on all pull requests, and who may change them."""

    url: str = ""
    token: str = "a token"
    is_read_only: bool = False
    comments: list[dict[str, Any]] = field(default_factory=list)

    def says(self, body: str, login: str = BOT, pull_request: int = 7) -> dict[str, Any]:
        """Add a comment."""
        number = len(self.comments) + 1
        comment = {"id": number, "body": body, "user": {"login": login}, "of": pull_request}
        self.comments.append(comment)
        return comment

    def answer(self, method: str, path: str, body: dict[str, str]) -> tuple[int, Any]:
        """The status and the answer to a request."""
        address = urlsplit(path)
        if address.path == "/graphql":
            return 200, {"data": {"viewer": {"login": BOT}}}
        prefix = f"/repos/{REPOSITORY}/issues"
        if method != "GET" and self.is_read_only:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "PATCH" and (of := re.fullmatch(rf"{prefix}/comments/(\d+)", address.path)):
            self.comments[int(of[1]) - 1] |= body
            return 200, self.comments[int(of[1]) - 1]
        if of := re.fullmatch(rf"{prefix}/(\d+)/comments", address.path):
            number = int(of[1])
            if method == "POST":
                if len(body["body"]) > 65_536:
                    return 422, {"message": "Body is too long"}
                return 201, self.says(body["body"], pull_request=number)
            asked = parse_qs(address.query)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            assert size <= 100
            found = [comment for comment in self.comments if comment["of"] == number]
            return 200, found[(page - 1) * size : page * size]
        return 404, {"message": "Not Found"}


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    """The API, on a free port."""
    github = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            if self.headers["Authorization"] == f"Bearer {github.token}":
                status, answer = github.answer(self.command, self.path, body)
            else:
                status, answer = 401, {"message": "Bad credentials"}
            told = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_PATCH = handle_request  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    github.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
