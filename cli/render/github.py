"""What `memhouse check` says to GitHub: annotations on source lines, and a job summary."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ...queries.check import Check
from ...queries.checking.judge import Verdict
from ...queries.checking.owning_lines import Line
from ...schema.readable import human_bytes, one_line
from .text import print_text
from .verdicts import markdown

if TYPE_CHECKING:
    from ...queries.checking.what_to_change import Changes

_COMMANDS = {"fail": "error", "warn": "warning", "not judged": "warning", "pass": "notice"}


def print_annotations(
    check: Check, lines: Mapping[int, Line], changes: Sequence["Changes"] = ()
) -> None:
    """Print a workflow command for each program that breaks a rule, is lost, or was accepted.

    lines: by dump_id, what owns the growth; changes: what to change in programs that fail. The
    Markdown is appended to the job's summary, or printed where there is no job.
    """
    for note in check.notes:
        print_text(_command("notice", {"title": "memhouse"}, note))
    for verdict in check.verdicts:
        if verdict.breaches or verdict.is_lost or verdict.accepted_reason is not None:
            line = None if verdict.dump_id is None else lines.get(verdict.dump_id)
            print_text(_annotation(check, verdict, line))
    text = f"{markdown(check, changes)}\n"
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        print_text(text)


def _annotation(check: Check, verdict: Verdict, line: Line | None) -> str:
    """The command that annotates the line, or no line if it is not in the repository."""
    figure = check.metric.removesuffix("_bytes").replace("_", " ")
    properties: dict[str, str] = {}
    said = [f"{verdict.name}: {verdict.said}"]
    change, before, now = verdict.change_bytes, verdict.before_bytes, verdict.now_bytes
    if change and before is not None and now is not None:
        sign = "+" if change > 0 else ""
        said.append(
            f"{figure} {human_bytes(before)} in {verdict.held_against}, now {human_bytes(now)} "
            f"({sign}{human_bytes(change)})"
        )
    if verdict.cause:
        said.append(verdict.cause)
    if line is not None:
        said.append(f"{line.file}:{line.number} has {human_bytes(line.change_bytes)} of it")
        file = in_repository(line.file, Path(os.environ.get("GITHUB_WORKSPACE") or "."))
        if file is not None:
            properties |= {"file": file, "line": str(line.number)}
    properties["title"] = f"memhouse: {figure} memory of {verdict.name}"
    return _command(_COMMANDS[verdict.outcome], properties, "\n".join(said))


def in_repository(file: str, root: Path) -> str | None:
    """A source file, as a dump names it, relative to the repository; None if it is not there.

    The program may have been compiled elsewhere: then the longest end of its path that is a file
    of the repository is taken.
    """
    parts = PurePosixPath(file).parts
    if ".." in parts:
        return None
    for start in range(1 if file.startswith("/") else 0, len(parts)):
        path = PurePosixPath(*parts[start:])
        # A damaged dump can name what is too long for a file's name.
        with suppress(OSError):
            if (root / path).is_file():
                return str(path)
    return None


def _command(name: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command, escaped as GitHub's own toolkit does it."""
    told = ",".join(f"{key}={_escaped_property(value)}" for key, value in properties.items())
    text = "\n".join(map(one_line, message.split("\n")))
    return f"::{name} {told}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(one_line(text)).replace(":", "%3A").replace(",", "%2C")
