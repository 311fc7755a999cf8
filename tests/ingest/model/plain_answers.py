"""What the rules of attribution answer for a node: an origin, or why there is none."""

from dataclasses import dataclass, replace

from .plain_text import Position


@dataclass(frozen=True)
class Origin:
    """The instruction whose result a value holds, and the rule that found it."""

    instruction: str
    rule: str


@dataclass(frozen=True)
class Fill:
    """One constant everywhere: the value at which the way ended, and the rule on the way."""

    value: Position
    rule: str = "own"


@dataclass(frozen=True)
class Circle:
    """A way that comes back to a node on it, and the node on it that is to try something else."""

    leaver: Position


Answer = Origin | Fill | Circle | None
# The nodes that lead to where an answer is asked for, in order, each with how fit it is to leave
# a circle: a loop with another way best of all, what has no other way not at all.
Way = dict[Position, int]
LOOP, OTHER, STUCK = range(3)


def circle(node: Position, way: Way) -> Circle | None:
    """What is to be done when a way comes back to a node.

    Decision: of what lies on a circle, a loop takes what enters it; the first on the way does.
    """
    nodes = list(way)
    around = nodes[nodes.index(node) :]
    best = min(way[one] for one in around)
    return None if best == STUCK else Circle(next(one for one in around if way[one] == best))


# Decision: a guess stays a guess, so that a user sees it.
GUESSES = ("operand", "weak")


def via(answer: Answer, rule: str) -> Answer:
    """The same origin, by the rule further out; but a guess is told as one."""
    if not isinstance(answer, Origin | Fill):
        return answer
    if answer.rule in GUESSES and not (rule == "operand" and answer.rule == "operand"):
        return answer
    return replace(answer, rule=rule)
