"""A text file of a dump as a list of lines, and errors that quote a line and its number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...xla.errors import LARGEST_ID, LARGEST_LINES, DumpError

# A file with more corrupt lines is not a text file at all.
_MAX_CORRUPT_LINES = 100
_MAX_DIGITS = 18

Name = TypeVar("Name")


@dataclass(frozen=True)
class Lines:
    """Consecutive lines of a file, without their line ends.

    Attributes:
        text: the lines.
        first_number: the line number in the file of the first one, from 1.
    """

    text: list[str]
    first_number: int = 1

    @property
    def last_number(self) -> int:
        """The line number in the file of the last line."""
        return self.first_number + len(self.text) - 1

    def between(self, start: int, stop: int) -> "Lines":
        """The lines from index `start` up to `stop`, exclusive."""
        return Lines(self.text[start:stop], self.first_number + start)


def split_lines(content: bytes) -> Lines:
    r"""The lines of a file; only `\n` and `\r\n` end a line.

    A last character that is incomplete is dropped. Raises DumpError for an empty file, for more
    than LARGEST_LINES lines, and for bytes that are not UTF-8.
    """
    if not content or content.isspace():
        raise DumpError("the file is empty: dump the program again")
    if len(content) > LARGEST_LINES and content.count(b"\n") > LARGEST_LINES:
        message = f"the file has more than {LARGEST_LINES:,} lines: no dump's text has so many"
        raise DumpError(message)
    text = _decode(content)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return Lines(text.removesuffix("\n").split("\n"))


def split_complete_lines(content: bytes) -> Lines:
    """The lines of a file. Raises DumpError as `split_lines`, and for a truncated file."""
    lines = split_lines(content)
    check_last_line_end(content)
    return lines


def split_hlo_lines(content: bytes) -> tuple[Lines, list[int]]:
    """The lines of an HLO text, and the line numbers of corrupt instructions, now empty lines.

    An instruction is corrupt if its bytes are not UTF-8. Raises DumpError as
    `split_complete_lines` if another line is corrupt, or more than a few instructions are.
    """
    try:
        return split_complete_lines(content), []
    except DumpError as error:
        lines = content.split(b"\n")
        corrupt = [index for index, line in enumerate(lines) if not _is_utf8(line)]
        are_instructions = all(lines[index].startswith(b"  ") for index in corrupt)
        if not (0 < len(corrupt) <= _MAX_CORRUPT_LINES and are_instructions):
            raise error from None
    for index in corrupt:
        lines[index] = b""
    return split_complete_lines(b"\n".join(lines)), [index + 1 for index in corrupt]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_last_line_end(content: bytes) -> None:
    """Raise DumpError if the last line has no line end: XLA ends every line of its dumps."""
    if not content.endswith(b"\n"):
        message = "the last line has no end: the file is cut short, dump the program again"
        raise DumpError(message, content.count(b"\n") + 1)


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return content[: error.start].decode()
        line = content.count(b"\n", 0, error.start) + 1
        raise DumpError("the file is binary or damaged, not the text of a dump", line) from None


def split_sections(lines: Lines, openings: Mapping[Name, str]) -> dict[Name, Lines]:
    """The sections of a file, in its order.

    Args:
        openings: by section, how its first line starts; the first such line of the file counts.
    Raises:
        DumpError: a line that is not blank precedes the first section.
    """
    starts: dict[Name, int] = {}
    remaining = dict(openings)
    prefixes = tuple(openings.values())
    for index, line in enumerate(lines.text):
        # Most lines start with a space, and no opening does.
        if line.startswith(prefixes):
            for name, opening in list(remaining.items()):
                if line.startswith(opening):
                    starts[name] = index
                    del remaining[name]
            prefixes = tuple(remaining.values())
    names = list(starts)
    for index, line in enumerate(lines.text[: starts[names[0]]] if names else ()):
        if line:
            raise at_line(DumpError(f"expected {names[0]}"), line, lines.first_number + index)
    stops = [*list(starts.values())[1:], len(lines.text)]
    return {
        name: lines.between(starts[name], stop)
        for name, stop in zip(names, stops[: len(names)], strict=True)
    }


def read_integer(digits: str, largest: int = LARGEST_ID) -> int:
    """A decimal integer from 0. Raises DumpError if it is over `largest`."""
    if len(digits) > _MAX_DIGITS or (number := int(digits)) > largest:
        raise DumpError(f"a number is over {largest}")
    return number


def at_line(problem: DumpError, line: str, number: int) -> DumpError:
    """A problem within one line as an error that quotes the line and has its number."""
    return DumpError(f"{problem}, found {excerpt(line)}", number, [number])


def excerpt(text: str, length: int = 60) -> str:
    """The beginning of `text` for a message, quoted."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def uncompressed_name(name: str) -> str:
    """A file's name without its compression suffix."""
    return name.removesuffix(".gz").removesuffix(".zst")
