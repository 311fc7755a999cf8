"""Writes the summary as a comment on the pull request; a later push updates the same comment.

Environment: SUMMARY, the file in Markdown; NAME, which tells comments of several jobs apart;
PULL_REQUEST, its number; COMMIT; REPORT_URL, or empty; GITHUB_TOKEN, and what GitHub sets. A
comment that cannot be written is a notice: a fork's token may only read, and the job's summary
says the same.
"""

import json
import os
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

# GitHub takes 65,536 characters.
LONGEST = 60_000
A_PAGE = 100


def main() -> None:
    """Update the comment that has the marker, or write one."""
    # Quoted, since `-->` would end the marker.
    marker = f"<!-- memhouse: {quote(os.environ['NAME'], safe=' ')} -->"
    body = {"body": f"{marker}\n{text()}"}
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    of_pull_request = f"{issues}/{os.environ['PULL_REQUEST']}/comments"
    try:
        own = login()
        for comment in comments(of_pull_request):
            if comment["body"].startswith(marker) and plain(comment["user"]["login"]) == own:
                ask("PATCH", f"{issues}/comments/{comment['id']}", body)
                return
        ask("POST", of_pull_request, body)
    except HTTPError as error:
        tell(f"GitHub answers {error.code} {error.reason}")
    except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
        tell(str(error))


def text() -> str:
    """The summary, cut at a line if it is too long, and where it comes from."""
    lines = Path(os.environ["SUMMARY"]).read_text(encoding="utf-8").rstrip("\n").split("\n")
    length, kept = 0, 0
    while kept < len(lines) and length + len(lines[kept]) < LONGEST:
        length += len(lines[kept]) + 1
        kept += 1
    told = "\n".join(lines[:kept])
    if kept < len(lines):
        told += f"\n\n{len(lines) - kept} more lines are in the job's summary"
    server, repository = os.environ["GITHUB_SERVER_URL"], os.environ["GITHUB_REPOSITORY"]
    job = f"{server}/{repository}/actions/runs/{os.environ['GITHUB_RUN_ID']}"
    links = [f"commit {os.environ['COMMIT']}", f"[job]({job})"]
    if os.environ["REPORT_URL"]:
        links.append(f"[report]({os.environ['REPORT_URL']})")
    return f"{told}\n\n{', '.join(links)}"


def login() -> str:
    """Whose token it is: somebody else may quote the marker, and that comment is theirs."""
    answer = ask("POST", os.environ["GITHUB_GRAPHQL_URL"], {"query": "{ viewer { login } }"})
    return plain(answer["data"]["viewer"]["login"])


def plain(name: str) -> str:
    """A login without what one of GitHub's two APIs adds to those of apps."""
    return name.removesuffix("[bot]")


def comments(of_pull_request: str) -> Iterator[dict[str, Any]]:
    """All comments, oldest first."""
    page = 1
    while found := ask("GET", f"{of_pull_request}?per_page={A_PAGE}&page={page}"):
        yield from found
        page += 1


def ask(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """GitHub's answer. Raises HTTPError if it refuses."""
    request = Request(
        path if "://" in path else os.environ["GITHUB_API_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def tell(why: str) -> None:
    """Print a notice that the comment is missing."""
    told = f"{why}; the job's summary says what the comment would say"
    escaped = told.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::notice title=memhouse%3A the comment is not written::{escaped}")


main()
