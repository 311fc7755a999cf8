"""The sentences that the program can say are those that were approved."""

import difflib

from .support.words import APPROVED, sentences


def test_the_sentences_are_the_approved_ones():
    approved, today = APPROVED.read_text().splitlines(), list(sentences())
    changed = [line for line in difflib.ndiff(approved, today) if line[0] in "+-"]
    assert changed == [], "if this is meant: make approve"
