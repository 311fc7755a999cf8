"""Parses the texts of a dumped program into parts."""

from concurrent.futures import ThreadPoolExecutor

from .. import formats
from ..errors import DumpError
from ..formats import BY_NAME, FORMATS, Format, Role
from ..model.parts import NotUnderstoods, Parts, UsedValues
from ..outcomes import FAILED, OK, PARTIAL, FileOutcome
from ..readers.lines import Lines, check_end, excerpt, split_lines, whole_lines
from ..readers.used_values import read_definitions

Texts = dict[Format, bytes]
Outcomes = dict[Format, FileOutcome]

# The first file of older dumps holds all parts.
FIRST = BY_NAME["buffer-assignment"]
USED_VALUES = BY_NAME["buffer-assignment-values"]


def read_texts(
    texts: Texts, outcomes: Outcomes, documents: dict[Format, Lines], *, beside: bool
) -> Parts:
    """What the texts hold; `documents` receives the lines of each section.

    A text is taken out of `texts`, so that its memory is free as soon as it is read.
    """
    parts = Parts()
    with ThreadPoolExecutor(1) as thread:
        # HLO text is about half of the work, and Arrow and numpy release Python's lock.
        hlo = thread.submit(_read_hlo, texts, outcomes, parts) if beside else None
        if hlo is None:
            _read_hlo(texts, outcomes, parts)
        for format_ in FORMATS:
            if format_.role is Role.ASSIGNMENT and format_ in texts:
                with outcomes[format_].recording():
                    text = texts.pop(format_)
                    _read_document(format_, text, outcomes[format_], parts, documents)
            elif format_.role is Role.REPORT and format_ in texts:
                _read_whole(format_, texts.pop(format_), outcomes[format_], parts)
        if hlo is not None:
            hlo.result()
    return parts


def _read_hlo(texts: Texts, outcomes: Outcomes, parts: Parts) -> None:
    """Read the HLO text, from the first format that has one."""
    for format_ in FORMATS:
        if format_.role is Role.PROGRAM and format_ in texts:
            _read_whole(format_, texts.pop(format_), outcomes[format_], parts)
            return


def _read_whole(format_: Format, text: bytes, outcome: FileOutcome, parts: Parts) -> None:
    """Read a file that consists of one part."""
    with outcome.recording():
        part = format_.read(whole_lines(text))
        formats.store_part(parts, format_, part)
        outcome.pass_over(getattr(part, "not_understood", ()))


def _read_document(
    format_: Format, text: bytes, outcome: FileOutcome, parts: Parts, documents: dict[Format, Lines]
) -> None:
    """Read every section of a file; a section is read wholly or not at all.

    `documents` receives the lines of each section. Raises DumpError.
    """
    lines = split_lines(text)
    found = formats.sections(lines)
    if format_ not in found:
        raise DumpError(f"not a dump of {format_}: it starts with {excerpt(lines.first())}", line=1)
    for section, part in found.items():
        # The first file of older dumps holds all parts; every other file holds one part.
        if section != format_ and format_ != FIRST:
            raise DumpError(
                f"expected {format_} alone, found {section}: it is another dump's file",
                int(part.numbers[0]),
            )
    errors = []
    newer: NotUnderstoods = ()
    for section, part in found.items():
        outcome.holds = (*outcome.holds, section.title)
        if section in documents:
            parts.doubled.append(section.title)
        documents[section] = part
        try:
            if part.numbers[-1] == lines.numbers[-1]:
                check_end(text)
            if section.role is Role.ASSIGNMENT:
                read = section.read(part)
                formats.store_part(parts, section, read)
                newer += read.not_understood
        except DumpError as error:
            errors.append(error)
    if errors:
        outcome.status = FAILED if len(errors) == len(found) else PARTIAL
        outcome.line, outcome.message = errors[0].line, str(errors[0])
    else:
        outcome.pass_over(newer)


def add_definitions(parts: Parts, used: UsedValues, section: Lines, outcomes: Outcomes) -> None:
    """Read the definitions in Used values, which replace a missing HLO text."""
    outcome = next(file for file in outcomes.values() if USED_VALUES.title in file.holds)
    try:
        parts.used_values = read_definitions(section, used)
    except DumpError as error:
        parts.used_values = None
        if outcome.status == OK:
            alone = len(outcome.holds) == 1
            outcome.status = FAILED if alone else PARTIAL
            outcome.line, outcome.message = error.line, str(error)
