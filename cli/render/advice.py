"""Advice for a person: a numbered paragraph a finding."""

from collections.abc import Sequence

from ...queries.advice.advice import Advice
from ...queries.advice.finding import in_full
from .text import print_paragraph, print_text, results


def print_advice(advice: Advice) -> None:
    """Print what the peak consists of, and the findings."""
    with results():
        print_paragraph(advice.heading)
        for number, texts in enumerate(in_full(advice.findings), start=1):
            print_text("")
            _print_finding(f"{number:>2}. ", texts)
        for sentence in filter(None, [advice.afterwards, advice.together_sentence]):
            print_text("")
            print_paragraph(sentence)


def _print_finding(number: str, texts: Sequence[str]) -> None:
    margin = " " * len(number)
    first, *lines = texts
    print_paragraph(first, number, margin)
    for line in lines:
        print_paragraph(line, margin, f"{margin}       ")
