"""What a newer XLA may print beside what the readers know: found, named and passed over.

A damaged file must not pass for a newer one. So each function is strict about the form of what
it passes over, and what is left must still be whole: the readers and the model compare totals.
"""

import difflib
import re
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import NotUnderstood, NotUnderstoods
from ...xla.shapes import ELEMENT_BYTES
from .lines import Lines, Mask, as_numpy, excerpt

# `BufferAssignment stats:` and `HloSomething (max 5):`, but no line of numbers or shapes.
_HEADING = re.compile(r"[A-Z][A-Za-z0-9 _/().-]*:")
_SUBHEADING = re.compile(r"  [A-Z][A-Za-z0-9 _/().-]*:")
_TABLE = re.compile(r"[A-Z][A-Za-z0-9]*(?: [A-Za-z0-9 ]+)?:?")
_LIKENESS = 0.8


def before_newer_sections(
    body: Lines, known: Mask, *, indented: bool = False
) -> tuple[Lines, NotUnderstoods]:
    """The lines before the first section with a heading that is not known, and its headings.

    `known` are the lines whose form is known. Where one follows such a heading, the lines stay
    as they are, because the heading then stands within a section.
    """
    pattern = _SUBHEADING if indented else _HEADING
    unknown = np.flatnonzero(body.ending(":") & ~known)
    # Most lines that end so are ` positions:`, so a look at one byte spares reading them.
    at_first = body.starts[unknown] + (2 if indented else 0)
    first = body.content[np.minimum(at_first, len(body.content) - 1)]
    found = [
        int(at)
        for at in unknown[(first >= ord("A")) & (first <= ord("Z"))]
        if pattern.fullmatch(body.between(int(at), int(at) + 1).first())
    ]
    if not found or known[found[0] :].any():
        return body, ()
    return body.between(0, found[0]), tuple(
        NotUnderstood(int(body.numbers[at]), f"section {excerpt(_text(body, at))}") for at in found
    )


def _text(lines: Lines, at: int) -> str:
    return lines.between(at, at + 1).first().strip()


def newer_lines(lines: Lines) -> NotUnderstoods:
    """Each line that is not blank, where no known XLA prints any."""
    return tuple(
        NotUnderstood(int(number), f"line {excerpt(str(text).strip())}")
        for number, text in zip(lines.numbers, lines.text.to_pylist(), strict=True)
        if text.strip()
    )


def without_newer_tables(
    body: Lines, is_open: Mask, is_close: Mask, is_table: Mask, other: Mask
) -> tuple[Lines, NotUnderstoods]:
    """HLO text without the tables outside of computations whose headings are not known.

    Such a table, like those of the stack frames (`is_table`), is a heading and the lines below
    it, up to a blank line, a computation or a known table. Behind the last computation it
    reaches to the end. `other` are the lines outside of computations whose form is not known.
    """
    closes = np.flatnonzero(is_close)
    last = closes[-1] if len(closes) else len(body)
    drop = np.zeros(len(body), bool)
    found = []
    stops = is_open | is_close | is_table
    stops[:last] |= body.equal("")[:last]
    ends = np.append(np.flatnonzero(stops), len(body))
    first = body.content[body.starts]
    for at in np.flatnonzero(other & (first >= ord("A")) & (first <= ord("Z"))):
        if drop[at]:
            continue
        text = body.between(int(at), int(at) + 1).first()
        if not _TABLE.fullmatch(text):
            continue
        drop[at : ends[np.searchsorted(ends, at)]] = True
        found.append(NotUnderstood(int(body.numbers[at]), f"section {excerpt(text)}"))
    return body.where(~drop), tuple(found)


def newer_words(lines: Lines, texts: pa.Array, what: str) -> NotUnderstoods:
    """Each distinct text once, by its first line; empty texts and nulls are nothing."""
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    some = as_numpy(pc.fill_null(pc.not_equal(texts, ""), False))
    if not some.any():
        return ()
    rows = np.flatnonzero(some)
    distinct, first = np.unique(texts.filter(pa.array(some)).to_pylist(), return_index=True)
    return tuple(
        NotUnderstood(int(lines.numbers[rows[at]]), f"{what} {excerpt(str(text))}")
        for text, at in zip(distinct, first, strict=True)
    )


def newer_element_types(lines: Lines, element_types: pa.Array) -> NotUnderstoods:
    """The element types whose size is not known; row k is of line k."""
    known = pc.is_in(element_types, value_set=pa.array(ELEMENT_BYTES, element_types.type))
    newer = pc.if_else(known, pa.scalar("", element_types.type), element_types)
    return newer_words(lines, newer, "element type")


def resembles(word: str, known: Collection[str]) -> bool:
    """Whether a word is nearly one that is known: then the text is damaged rather than newer."""
    return bool(difflib.get_close_matches(word, known, n=1, cutoff=_LIKENESS))
