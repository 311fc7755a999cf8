"""A message without its white space, so that it does not matter where a log broke its lines."""

import re
from bisect import bisect_right
from typing import Final

# A range of characters: start and exclusive end.
Span = tuple[int, int]

# A lookahead for the end of a number, which may be truncated at the end of the text, and before
# a gap or another number.
NUMBER_END: Final = r"(?=[^\d.\x20\0]|\.[^\d\0])"
NUMBER: Final = rf"\d{{1,18}}{NUMBER_END}"
ARRAY: Final = r"[a-z][a-z0-9]*\[[^\]\0]*\](?:\{[^}\0]*\})?"

_NUMERIC = frozenset("0123456789.")
# A line that was wrapped at a width keeps its space; one that was wrapped at a comma loses it.
_BREAK = re.compile(r"((?<=,)|[ \t]+)?\n(\s*)")


def compact_pattern(text: str) -> re.Pattern[str]:
    """A pattern for a CompactText; its spaces are for the reader and match nothing."""
    return re.compile(text.replace(" ", ""), re.DOTALL)


class CompactText:
    r"""A text without its white space, except that a space remains between two numbers.

    >>> CompactText("XLA label: %add.1 =\n  f32[8] 1 2").text
    'XLAlabel:%add.1=f32[8]1 2'

    Attributes:
        source: the text with its white space.
        text: the text without it; it ends with a line break if the source does: then its last
            word is complete.
        end: the length of `text` without that line break.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        words: list[str] = []
        # The offsets of the words in `text` and in `source`.
        self._starts: list[int] = []
        self._source_starts: list[int] = []
        self.end = 0
        previous = ""
        for match in re.finditer(r"\S+", source):
            word = match[0]
            if previous in _NUMERIC and word[0].isdigit():
                words.append(" ")
                self.end += 1
            self._starts.append(self.end)
            self._source_starts.append(match.start())
            words.append(word)
            self.end += len(word)
            previous = word[-1]
        self.text = "".join(words) + ("\n" if source.endswith("\n") else "")

    def source_offset(self, offset: int) -> int:
        """The offset in `source` of the character at this offset of `text`."""
        if not self._starts:
            return 0
        word = max(bisect_right(self._starts, offset) - 1, 0)
        return self._source_starts[word] + offset - self._starts[word]

    def source_part(self, span: Span) -> str:
        """The part of `source` for a part of `text` that is not empty."""
        return self.source[self.source_offset(span[0]) : self.source_offset(span[1] - 1) + 1]

    def printed(self, span: Span) -> str:
        """A part of `text` as XLA printed it: with its spaces, on one line."""
        if span[0] == span[1]:
            return ""
        return _BREAK.sub(_replace_break, self.source_part(span))


def _replace_break(line_break: re.Match[str]) -> str:
    return " " if line_break[1] is not None or line_break[2] == " " else ""
