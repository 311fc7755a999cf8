"""Output of `memhouse check` for GitHub: annotations on source lines, and a job summary."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ...queries.check import Changes, Check, Line
from ...queries.checking.judge import Verdict
from ...schema.readable import human_bytes, one_line
from .text import print_text
from .verdicts import markdown

_LEVELS = {"fail": "error", "warn": "warning", "not judged": "warning", "pass": "notice"}


def print_annotations(
    check: Check, lines: Mapping[int, Line], changes: Sequence[Changes] = ()
) -> None:
    """Print an annotation per program that violates a rule, is missing, or was accepted.

    The Markdown is appended to the job's summary, or printed outside a job.

    Args:
        lines: the source line that owns the growth, by dump_id.
        changes: advice for programs that fail.
    """
    for note in check.notes:
        print_text(_command("notice", {"title": "memhouse"}, note))
    for verdict in check.verdicts:
        if verdict.breaches or verdict.is_lost or verdict.accepted_reason is not None:
            line = None if verdict.dump_id is None else lines.get(verdict.dump_id)
            print_text(_annotation(check, verdict, line))
    summary_text = f"{markdown(check, changes)}\n"
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(summary_text)
    else:
        print_text(summary_text)


def _annotation(check: Check, verdict: Verdict, line: Line | None) -> str:
    """The workflow command for a program, at the line if that is in the repository."""
    figure = check.figure
    properties: dict[str, str] = {}
    messages = [f"{verdict.name}: {verdict.said}"]
    change, before, now = verdict.change_bytes, verdict.before_bytes, verdict.now_bytes
    if change and before is not None and now is not None:
        sign = "+" if change > 0 else ""
        messages.append(
            f"{figure} {human_bytes(before)} in {verdict.baseline_run}, now {human_bytes(now)} "
            f"({sign}{human_bytes(change)})"
        )
    if verdict.cause:
        messages.append(verdict.cause)
    if line is not None:
        messages.append(f"{human_bytes(line.change_bytes)} of it at {line.file}:{line.number}")
        file = in_repository(line.file, Path(os.environ.get("GITHUB_WORKSPACE") or "."))
        if file is not None:
            properties |= {"file": file, "line": str(line.number)}
    properties["title"] = f"memhouse: {figure} memory of {verdict.name}"
    return _command(_LEVELS[verdict.outcome], properties, "\n".join(messages))


def in_repository(file: str, root: Path) -> str | None:
    """Path of a source file relative to the repository, or None if the repository lacks it.

    The dump may contain a path of another machine: its longest suffix that is a file of the
    repository is returned.
    """
    parts = PurePosixPath(file).parts
    if ".." in parts:
        return None
    for start in range(1 if file.startswith("/") else 0, len(parts)):
        path = PurePosixPath(*parts[start:])
        # A path in a corrupt dump can be too long for the file system.
        with suppress(OSError):
            if (root / path).is_file():
                return str(path)
    return None


def _command(level: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command, escaped as in GitHub's toolkit."""
    pairs = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    lines = "\n".join(map(one_line, message.split("\n")))
    return f"::{level} {pairs}::{_escape(lines)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(one_line(text)).replace(":", "%3A").replace(",", "%2C")
