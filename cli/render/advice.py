"""Advice for a person: a numbered paragraph a finding."""

from ...queries.advise import Advice
from ...queries.advising.finding import Finding, Grade
from ...queries.cells import human_bytes
from .paragraphs import print_paragraph
from .text import print_text, results


def print_advice(advice: Advice) -> None:
    """Print the findings, the largest saving first, and what the peak consists of."""
    with results():
        size, time = human_bytes(advice.peak.peak_bytes), advice.peak.peak_time
        print_paragraph(f"The peak is {size} at time {time}: {_parts(advice)}.")
        if advice.self_check_bytes:
            more = human_bytes(advice.self_check_bytes)
            print_paragraph(f"The replay of the unchanged program differs by {more}.")
        if not advice.findings:
            print_paragraph("No change is known that would lower it.")
        for number, finding in enumerate(advice.findings, start=1):
            print_text("")
            _print_finding(f"{number:>2}. ", finding)
        followed = sum(finding.change is not None for finding in advice.findings)
        if followed > 1:
            print_text("")
            print_paragraph(
                f"All {followed} with a saving together: {human_bytes(advice.together.peak_bytes)}."
            )


def _print_finding(number: str, finding: Finding) -> None:
    margin = " " * len(number)
    told = f"{_saved(finding)}: " if finding.saving_bytes is not None else ""
    print_paragraph(f"{told}{finding.title}", number, margin)
    if finding.source is not None:
        print_paragraph(finding.source, margin, margin)
    print_paragraph(f"write: {finding.write}", margin, margin + "       ")
    print_paragraph(f"why: {finding.why}", margin, margin + "     ")


def _saved(finding: Finding) -> str:
    """By how much the peak falls, with its grade."""
    assert finding.saving_bytes is not None
    saved = f"-{human_bytes(finding.saving_bytes)}"
    match finding.grade:
        case Grade.expected if finding.tolerance is not None:
            return f"{saved} (expected, ± {finding.tolerance:.0%} of the new peak)"
        case Grade.between if finding.low_bytes is not None and finding.high_bytes is not None:
            return f"-{human_bytes(finding.low_bytes)} to -{human_bytes(finding.high_bytes)}"
        case grade:
            return f"{saved} ({grade.value})"


def _parts(advice: Advice) -> str:
    rows = advice.consists_of.arrow().to_pylist()
    return ", ".join(f"{human_bytes(row['size_bytes'])} of {row['category']}s" for row in rows)
