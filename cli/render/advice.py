"""Advice for a person: a numbered paragraph a finding."""

from ...queries.advise import Advice
from ...queries.advising.finding import Finding
from ...queries.advising.words import in_full, together_words
from .paragraphs import print_paragraph
from .text import print_text, results


def print_advice(advice: Advice) -> None:
    """Print what the peak consists of, and the findings."""
    with results():
        print_paragraph(advice.heading)
        for number, finding in enumerate(advice.findings, start=1):
            print_text("")
            _print_finding(f"{number:>2}. ", finding)
        if len(advice.followed) > 1:
            print_text("")
            print_paragraph(together_words(advice.followed, advice.together))


def _print_finding(number: str, finding: Finding) -> None:
    margin = " " * len(number)
    first, *lines = in_full(finding)
    print_paragraph(first, number, margin)
    for line in lines:
        print_paragraph(line, margin, f"{margin}       ")
