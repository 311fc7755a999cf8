"""What `memhouse check` says of a run: Markdown, a table, a row for each program, annotations."""

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pyarrow as pa

from ...advice.finding import Finding, headline, in_a_line
from ...queries.check import Changes, Check, Line
from ...queries.checking.judge import RESERVED, Verdict
from ...queries.result import folded
from ...schema.readable import command, human_bytes, one_line
from .text import (
    Format,
    as_code,
    as_text,
    markdown_lines,
    print_paragraph,
    print_prose,
    print_rows,
    print_text,
)

_SHOWN = pa.schema(
    [
        ("module", pa.string()),
        ("before_bytes", pa.int64()),
        ("now_bytes", pa.int64()),
        ("change_bytes", pa.int64()),
        ("baseline_run", pa.string()),
        ("cause", pa.string()),
        ("verdict", pa.string()),
        ("origin", pa.string()),
    ]
)
_FIGURES = ("module", "before_bytes", "now_bytes", "change_bytes", "baseline_run")


def print_check(
    check: Check, output: Format, changes: Sequence[Changes] = (), *, is_whole: bool
) -> None:
    """Print what matters of a run, or with `is_whole` all programs; csv and json have all.

    changes: what to change in the programs that fail.
    """
    match output:
        case "csv" | "json":
            print_rows(check.rows, output)
        case "markdown":
            print_text(markdown(check, changes, is_whole=is_whole))
        case _:
            print_text(_heading(check, one_line(check.run_id)))
            for note in check.notes:
                print_text(one_line(note))
            _print_table(_rows(check, is_whole=is_whole))
            if check.is_judged:
                print_prose(_rules(check))
            for line in _after(check, is_whole=is_whole):
                print_text(line)
            for program in changes:
                print_text(f"\n{_to_change(one_line(program.name))}")
                for number, finding in enumerate(program.findings, start=1):
                    print_paragraph(one_line(in_a_line(finding)), f"  {number}. ", "     ")


def _print_table(rows: pa.Table) -> None:
    """Print figures side by side; words take more room, and follow."""
    if not len(rows):
        return
    print_text("")
    print_rows(rows.select([*_FIGURES, "origin"]), "table")
    print_text("")
    for row in rows.to_pylist():
        said = [row["verdict"], *([row["cause"]] if row["cause"] else [])]
        if said != ["pass"]:
            print_prose(one_line(f"{row['module']}: {'; '.join(said)}"))


def markdown(check: Check, changes: Sequence[Changes] = (), *, is_whole: bool = False) -> str:
    """The summary as Markdown, fit for a comment on a pull request; its first line has it all."""
    heading = _heading(check, as_code(one_line(check.run_id)))
    parts = [f"### memhouse: {heading}", *(as_text(one_line(note)) for note in check.notes)]
    rows = _rows(check, is_whole=is_whole)
    if len(rows):
        parts.append("".join(markdown_lines(rows)).rstrip("\n"))
    parts += [as_text(_rules(check))] if check.is_judged else []
    parts += _after(check, is_whole=is_whole)
    for program in changes:
        parts.append(_to_change(as_code(one_line(program.name))))
        parts.append("\n".join(f"1. {_in_markdown(finding)}" for finding in program.findings))
    return "\n\n".join(parts)


def _to_change(name: str) -> str:
    return f"What to change in {name}, and by how much its peak would fall:"


def _in_markdown(finding: Finding) -> str:
    where = f" ({as_text(one_line(finding.source))})" if finding.source is not None else ""
    told = as_text(one_line(headline(finding)))
    return f"{told}{where}: {as_code(one_line(finding.write))}"


def _heading(check: Check, run: str) -> str:
    return f"{check.figure} memory of {run}: {check.result}"


def _rules(check: Check) -> str:
    """What the programs were held to, and where each rule is set."""
    return one_line(f"Rules: {', '.join(check.rules)}")


def _after(check: Check, *, is_whole: bool) -> Iterator[str]:
    """What follows the rows, a line each."""
    if not is_whole:
        unchanged = [v for v in check.verdicts if v.is_judged and not v.matters]
        if unchanged and any(verdict.matters for verdict in check.verdicts):
            yield f"{len(unchanged)} unchanged"
        if check.helpers:
            yield check.helpers
    if any(v.cause for v in check.verdicts if v.matters and v.metric == RESERVED):
        yield "Causes are told in bytes of the peak."
    changed = [verdict.baseline_run for verdict in check.breaches if verdict.change_bytes]
    diffs = [
        as_code(command("diff", names=[before, check.run_id]))
        for before in dict.fromkeys(changed)
        if before is not None
    ]
    if diffs:
        yield f"What changed: {', '.join(diffs)}"


def _rows(check: Check, *, is_whole: bool) -> pa.Table:
    """The rows to show: equal programs of several hosts are one row."""
    if is_whole:
        named = [(verdict, verdict.name) for verdict in check.verdicts]
    else:
        shown = [verdict for verdict in check.verdicts if verdict.matters]
        named = [
            (verdict, verdict.name if names == verdict.workload else _of_hosts(verdict, names))
            for verdict, names in folded(shown, _same, lambda verdict: verdict.workload)
        ]
    rows = [
        {
            "module": name,
            "before_bytes": verdict.before_bytes,
            "now_bytes": verdict.now_bytes,
            "change_bytes": verdict.change_bytes,
            "baseline_run": verdict.baseline_run,
            "cause": verdict.cause,
            "verdict": verdict.said,
            "origin": verdict.origin,
        }
        for verdict, name in named
    ]
    return pa.Table.from_pylist(rows, schema=_SHOWN)


def _of_hosts(verdict: Verdict, names: str) -> str:
    return f"{verdict.module_name}{verdict.platform_suffix} of {names}"


def _same(verdict: Verdict) -> Hashable:
    """Equal for verdicts that say the same of one program on several hosts."""
    if verdict.program_id is None:
        return None
    return (
        verdict.module_name,
        verdict.program_id,
        verdict.held_program_id,
        verdict.baseline_run,
        verdict.cause,
        verdict.said,
    )


# What check says to GitHub: annotations on source lines, and a job summary.

_COMMANDS = {"fail": "error", "warn": "warning", "not judged": "warning", "pass": "notice"}


def print_annotations(
    check: Check, lines: Mapping[int, Line], changes: Sequence[Changes] = ()
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
    figure = check.figure
    properties: dict[str, str] = {}
    said = [f"{verdict.name}: {verdict.said}"]
    change, before, now = verdict.change_bytes, verdict.before_bytes, verdict.now_bytes
    if change and before is not None and now is not None:
        sign = "+" if change > 0 else ""
        said.append(
            f"{figure} {human_bytes(before)} in {verdict.baseline_run}, now {human_bytes(now)} "
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
