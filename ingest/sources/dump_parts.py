"""The parts of a dumped program: from the contents of its files, as far as they can be read."""

from ...xla.errors import DumpError
from ...xla.parts import Parts
from ...xla.program import NotUnderstood, Program, Unread
from .. import formats
from ..formats import BY_NAME, FORMATS, Format, Role
from ..outcomes import FAILED, OK, PARTIAL, FileOutcome
from ..readers.hlo_proto import read_hlo_proto
from ..readers.hlo_text import read_definitions
from ..readers.lines import (
    Lines,
    check_last_line_end,
    excerpt,
    split_complete_lines,
    split_hlo_lines,
    split_lines,
)
from ..readers.pasted import read_pasted_assignment
from ..readers.usage_report import read_rounded_allocations, read_totals
from ..readers.used_values import read_definition_lines

Contents = dict[Format, bytes]
Outcomes = dict[Format, FileOutcome]
Sections = dict[Format, Lines]

# The first file of older dumps contains all parts; every other file contains one part.
FIRST = formats.ASSIGNMENT
_USED_VALUES = BY_NAME["buffer-assignment-values"]


def read_texts(contents: Contents, outcomes: Outcomes) -> tuple[Parts, Sections]:
    """The parts in the texts of a dump, and the sections of its buffer-assignment files.

    Each text is removed from `contents`, so that its memory is free as soon as it is read.
    Errors are recorded in the outcomes.
    """
    parts, sections = Parts(), Sections()
    # The text of an OOM dump equals the HLO text: only the first of the two is read.
    program = next((f for f in FORMATS if f.role is Role.PROGRAM and f in contents), None)
    if program is not None:
        _read_part(program, contents.pop(program), outcomes[program], parts)
    for format_ in FORMATS:
        if format_ not in contents:
            continue
        if format_.role is Role.ASSIGNMENT:
            with outcomes[format_].recording():
                content = contents.pop(format_)
                _read_sections(format_, content, outcomes[format_], parts, sections)
        elif format_.role is Role.REPORT:
            _read_part(format_, contents.pop(format_), outcomes[format_], parts)
    return parts, sections


def _read_part(format_: Format, content: bytes, outcome: FileOutcome, parts: Parts) -> None:
    """Read a file that consists of one part."""
    with outcome.recording():
        corrupt: list[int] = []
        if format_.role is Role.PROGRAM:
            lines, corrupt = split_hlo_lines(content)
        else:
            lines = split_complete_lines(content)
        part = format_.read(lines)
        if corrupt:
            lines_are = "1 line is" if len(corrupt) == 1 else f"{len(corrupt)} lines are"
            message = f"{lines_are} not read, whose bytes are not UTF-8"
            part.unread.insert(0, Unread(corrupt[0], message))
        setattr(parts, format_.part, part)
        outcome.leave_out(getattr(part, "unread", ()))
        outcome.pass_over(getattr(part, "not_understood", ()))


def _read_sections(
    format_: Format, content: bytes, outcome: FileOutcome, parts: Parts, sections: Sections
) -> None:
    """Read the sections of a buffer-assignment file, each as a whole or not at all.

    Raises DumpError if the file is not of its format.
    """
    lines = split_lines(content)
    in_file = formats.sections(lines)
    if format_ not in in_file:
        raise DumpError(f"not a dump of {format_}: it starts with {excerpt(lines.text[0])}", line=1)
    if format_ != FIRST:
        for section, section_lines in in_file.items():
            if section != format_:
                raise DumpError(
                    f"expected {format_} alone, found {section}: it is another dump's file",
                    section_lines.first_number,
                )
    errors: list[DumpError] = []
    not_understood: list[NotUnderstood] = []
    for section, section_lines in in_file.items():
        outcome.holds = (*outcome.holds, section.title)
        if section in sections:
            parts.duplicated.append(section.title)
        sections[section] = section_lines
        try:
            if section_lines.last_number == lines.last_number:
                check_last_line_end(content)
            if section.role is Role.ASSIGNMENT:
                part = section.read(section_lines)
                setattr(parts, section.part, part)
                not_understood += part.not_understood
        except DumpError as error:
            errors.append(error)
    if errors:
        outcome.status = FAILED if len(errors) == len(in_file) else PARTIAL
        outcome.line, outcome.message = errors[0].line, str(errors[0])
    else:
        outcome.pass_over(not_understood)


def read_lone_text(format_: Format, content: bytes, outcome: FileOutcome, parts: Parts) -> None:
    """Read more of a usage report or a buffer assignment that is the only file of a program.

    A user may have pasted it: then it need not be as XLA prints it.
    """
    try:
        if format_ is formats.REPORT:
            _read_lone_report(split_lines(content), outcome, parts)
        elif outcome.status == FAILED and set(outcome.holds) <= {format_.title}:
            assignment = read_pasted_assignment(split_lines(content))
            if assignment is None:
                return
            # The last line may be truncated.
            if assignment.unread and not content.endswith(b"\n"):
                assignment.is_complete = False
            parts.assignment = assignment
            outcome.status, outcome.line, outcome.message = OK, None, None
            outcome.holds = (format_.title,)
            outcome.leave_out(assignment.unread)
    except DumpError:
        return  # The outcome already has the error of the format's own reader.


def _read_lone_report(lines: Lines, outcome: FileOutcome, parts: Parts) -> None:
    """Read the totals and the allocations in a usage report. Raises DumpError."""
    totals, assignment = read_totals(lines), read_rounded_allocations(lines)
    if not totals:
        return
    parts.totals, parts.assignment = totals, assignment
    if outcome.status == FAILED:
        outcome.status = PARTIAL
    outcome.note("of a usage report alone totals are exact, and other sizes are rounded")


def add_definitions(parts: Parts, sections: Sections, outcomes: Outcomes) -> None:
    """Read the definitions in Used values, if there are no HLO text and no binary.

    An error removes the used values, and is recorded in the outcome of their file.
    """
    if parts.program is not None or parts.used_values is None:
        return
    outcome = next(file for file in outcomes.values() if _USED_VALUES.title in file.holds)
    try:
        definitions = read_definitions(read_definition_lines(sections[_USED_VALUES]))
        parts.used_values.definitions = definitions
        outcome.leave_out(definitions.unread)
    except DumpError as error:
        parts.used_values = None
        if outcome.status == OK:
            outcome.status = FAILED if len(outcome.holds) == 1 else PARTIAL
            outcome.line, outcome.message = error.line, str(error)


def add_binary(parts: Parts, content: bytes, *, is_damaged: bool) -> None:
    """Add the parts that the texts lack from the binary; replace all if a text is corrupt.

    The texts have precedence: only they have XLA's order of positions and uses, and the names of
    the memory spaces. Raises DumpError.
    """
    program, assignment = read_hlo_proto(content)
    if is_damaged and assignment is not None:
        parts.assignment, parts.used_values, parts.live_ranges = assignment, None, None
        parts.program, parts.is_binary = program, True
        parts.totals, parts.duplicated = None, []
        return
    if parts.program is None:
        parts.program = program
    else:
        _add_shardings(parts.program, program)
        if not parts.program.frames:
            _add_frames(parts.program, program)
    if parts.assignment is None and assignment is not None:
        parts.assignment, parts.is_binary = assignment, True


def _add_shardings(text: Program, binary: Program) -> None:
    """Add the shardings of arguments: the newest libtpu prints none in the text."""
    shapes, others = text.entry_shapes, binary.entry_shapes
    if shapes is None or others is None or len(shapes) != len(others):
        return
    # Both are in the order of the signature.
    text.entry_shapes = [
        shape if shape.sharding is not None else shape._replace(sharding=other.sharding)
        for shape, other in zip(shapes, others, strict=True)
    ]


def _add_frames(text: Program, binary: Program) -> None:
    """Add the stack frames: up to JAX 0.7 only the binary has them."""
    text.frames = binary.frames
    for row, name in enumerate(text.names):
        other = binary.row_of.get(name)
        frame_id = None if other is None else binary.metadata[other].stack_frame_id
        text.metadata[row] = text.metadata[row]._replace(stack_frame_id=frame_id)
