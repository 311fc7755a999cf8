"""What `memhouse check` says of a run: a summary in Markdown."""

from ...queries.cells import human_bytes, one_line
from ...queries.check import Check
from ..options import Format
from .rows import print_rows
from .text import print_text


def print_check(check: Check, metric: str) -> None:
    """Print the summary, fit for a comment on a pull request."""
    failing = check.breaches
    count = len(check.verdicts)
    result = f"{len(failing)} of {count} fail" if failing else f"all {count} pass"
    run = one_line(check.run_id)
    print_text(f"### memhouse: {metric} memory of `{run}`: {result}\n")
    if len(check.rows):
        print_rows(check.rows, Format.markdown)
    for verdict in check.verdicts:
        if verdict.accepted_reason and verdict.baseline_bytes is not None:
            size = human_bytes(verdict.baseline_bytes)
            why = one_line(verdict.accepted_reason)
            print_text(f"\n{one_line(verdict.name)}: {size} was accepted: {why}")
    if check.missing:
        print_text(f"\nMissing since the run before: {', '.join(map(one_line, check.missing))}")
    if failing:
        before = failing[0].before_run_id
        if before is not None and before == failing[0].held_against:
            print_text(f"\nWhat grew: `memhouse diff {one_line(before)} {run}`")
