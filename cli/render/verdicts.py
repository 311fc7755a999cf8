"""Output of `memhouse check`: a table, Markdown, or a row per program."""

from collections.abc import Hashable, Iterator, Sequence

import pyarrow as pa

from ...advice.finding import Finding, headline, in_a_line
from ...queries.check import Changes, Check
from ...queries.checking.judge import RESERVED, Verdict
from ...queries.result import folded
from ...schema.readable import command, one_line
from .markdown import as_code, as_text, markdown_lines
from .text import Format, print_paragraph, print_prose, print_rows, print_text

_SCHEMA = pa.schema(
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
_METRICS = ("module", "before_bytes", "now_bytes", "change_bytes", "baseline_run")


def print_check(
    check: Check, output: Format, changes: Sequence[Changes] = (), *, show_all: bool
) -> None:
    """Print the changed programs of a run; with `show_all`, csv and json all programs.

    Args:
        changes: advice for programs that fail.
    """
    match output:
        case "csv" | "json":
            print_rows(check.rows, output)
        case "markdown":
            print_text(markdown(check, changes, show_all=show_all))
        case _:
            print_text(_heading(check, one_line(check.run_id)))
            for note in check.notes:
                print_text(one_line(note))
            _print_table(_rows(check, show_all=show_all))
            if check.is_judged:
                print_prose(_rules(check))
            for line in _footer(check, show_all=show_all):
                print_text(line)
            for program in changes:
                print_text(f"\n{_changes_heading(one_line(program.name))}")
                for number, finding in enumerate(program.findings, start=1):
                    print_paragraph(one_line(in_a_line(finding)), f"  {number}. ", "     ")


def _print_table(rows: pa.Table) -> None:
    """Print a table of sizes, then the verdict and cause of each program."""
    if not len(rows):
        return
    print_text("")
    print_rows(rows.select([*_METRICS, "origin"]), "table")
    print_text("")
    for row in rows.to_pylist():
        parts = [row["verdict"], *([row["cause"]] if row["cause"] else [])]
        if parts != ["pass"]:
            print_prose(one_line(f"{row['module']}: {'; '.join(parts)}"))


def markdown(check: Check, changes: Sequence[Changes] = (), *, show_all: bool = False) -> str:
    """The summary as Markdown for a comment on a pull request; the heading has the result."""
    heading = _heading(check, as_code(one_line(check.run_id)))
    parts = [f"### memhouse: {heading}", *(as_text(one_line(note)) for note in check.notes)]
    rows = _rows(check, show_all=show_all)
    if len(rows):
        parts.append("".join(markdown_lines(rows)).rstrip("\n"))
    parts += [as_text(_rules(check))] if check.is_judged else []
    parts += _footer(check, show_all=show_all)
    for program in changes:
        parts.append(_changes_heading(as_code(one_line(program.name))))
        parts.append("\n".join(f"1. {_in_markdown(finding)}" for finding in program.findings))
    return "\n\n".join(parts)


def _changes_heading(name: str) -> str:
    return f"What to change in {name}, and the peak reduction of each change:"


def _in_markdown(finding: Finding) -> str:
    source = f" ({as_text(one_line(finding.source))})" if finding.source is not None else ""
    title = as_text(one_line(headline(finding)))
    return f"{title}{source}: {as_code(one_line(finding.write))}"


def _heading(check: Check, run: str) -> str:
    return f"{check.figure} memory of {run}: {check.result}"


def _rules(check: Check) -> str:
    """The rules that were checked, each with the place where it is set."""
    return one_line(f"Rules: {', '.join(check.rules)}")


def _footer(check: Check, *, show_all: bool) -> Iterator[str]:
    """Lines below the rows: counts of programs that are not shown, and commands to run next."""
    if not show_all:
        unchanged = [v for v in check.verdicts if v.is_judged and not v.matters]
        if unchanged and any(verdict.matters for verdict in check.verdicts):
            yield f"{len(unchanged)} unchanged"
        if check.helpers:
            yield check.helpers
    if any(v.cause for v in check.verdicts if v.matters and v.metric == RESERVED):
        yield "Causes are in bytes of the peak."
    baselines = [verdict.baseline_run for verdict in check.breaches if verdict.change_bytes]
    diffs = [
        as_code(command("diff", names=[baseline, check.run_id]))
        for baseline in dict.fromkeys(baselines)
        if baseline is not None
    ]
    if diffs:
        yield f"What changed: {', '.join(diffs)}"


def _rows(check: Check, *, show_all: bool) -> pa.Table:
    """The rows to show; unless `show_all`, equal programs of several hosts are one row."""
    if show_all:
        named_verdicts = [(verdict, verdict.name) for verdict in check.verdicts]
    else:
        changed = [verdict for verdict in check.verdicts if verdict.matters]
        named_verdicts = [
            (verdict, verdict.name if names == verdict.workload else _group_name(verdict, names))
            for verdict, names in folded(changed, _group_key, lambda verdict: verdict.workload)
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
        for verdict, name in named_verdicts
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _group_name(verdict: Verdict, names: str) -> str:
    return f"{verdict.module_name}{verdict.platform_suffix} of {names}"


def _group_key(verdict: Verdict) -> Hashable:
    """Key of equal verdicts on one program of several hosts; None for an unknown program."""
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
