"""Phrases of a cause, and the one line that they make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# The order in which a cause is told: first what a user sets, then what follows from it.
KINDS = (
    *("health", "reader", "device", "compiler", "argument", "donation", "flag"),
    *("remat", "loop", "saved", "clones", "type", "collective", "result", "renamed"),
    *("layout", "packing", "schedule", "program"),
)
# The line is shorter than this.
_LINE = 100
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Phrase:
    """What differs, in words: in full, and `short` for a line that lacks room."""

    kind: str
    text: str
    short: str = ""


# The figures moved, and the program did not.
READER_CHANGED = Phrase("reader", "reader changed: another memhouse read the same program")


def in_order(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The first phrase of each kind, then the second ones and so on."""
    nth: dict[str, int] = {}
    placed = []
    for phrase in phrases:
        nth[phrase.kind] = nth.get(phrase.kind, -1) + 1
        placed.append((nth[phrase.kind], KINDS.index(phrase.kind), phrase))
    return [phrase for _, _, phrase in sorted(placed, key=lambda place: place[:2])]


def one_line(phrases: Sequence[Phrase]) -> str | None:
    """The phrases in one line; None if there are none.

    Where the line is too long, the longest phrases are shortened, and then the last ones are
    counted only.
    """
    if not phrases:
        return None
    for count in range(len(phrases), 0, -1):
        more = [f"{len(phrases) - count} more"] if count < len(phrases) else []
        for texts in _shortened(phrases[:count]):
            line = "; ".join([*texts, *more])
            if len(line) < _LINE:
                return line
    rest = "".join(f"; {text}" for text in more)
    return f"{texts[0][: _LINE - len(rest) - 2]}…{rest}"


def _shortened(phrases: Sequence[Phrase]) -> Iterator[list[str]]:
    """The phrases in full, and again with the longest one shortened, until all are."""
    texts = [phrase.text for phrase in phrases]
    yield texts
    for number in sorted(range(len(phrases)), key=lambda number: -len(texts[number])):
        short = phrases[number].short
        if short and len(short) < len(texts[number]):
            texts[number] = short
            yield texts


def size(amount: int) -> str:
    """Bytes to three digits: 89.1 MiB."""
    value, unit = float(abs(amount)), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def signed_size(amount: int) -> str:
    """The same with its sign."""
    return f"{'-' if amount < 0 else '+'}{size(amount)}"
