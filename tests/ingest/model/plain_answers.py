"""What the rules of attribution answer for a node: an origin, or why there is none."""

from dataclasses import dataclass

from .plain_text import Position


@dataclass(frozen=True)
class Origin:
    """The instruction whose result a value holds, and the rule that found it."""

    instruction: str
    rule: str


# Answers that are no origin: one constant everywhere; a way that comes back to a node on it.
FILL, CYCLE = "fill", "cycle"
Answer = Origin | str | None
# The nodes that lead to where an answer is asked for.
Way = frozenset[Position]


def via(answer: Answer, rule: str) -> Answer:
    """The same origin, by the rule further out."""
    return Origin(answer.instruction, rule) if isinstance(answer, Origin) else answer


def first_of(answers: list[Answer]) -> Answer:
    """The first origin; else a fill, if there is one; else a way that came back."""
    found = next((answer for answer in answers if isinstance(answer, Origin)), None)
    if found is not None:
        return found
    return next((kind for kind in (FILL, CYCLE) if kind in answers), None)
