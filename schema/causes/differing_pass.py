"""The first pass of the compiler that does something else with one program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# The text before the first pass of a pipeline.
PIPELINE_START = "pipeline-start"


class PassStep(NamedTuple):
    """A text between two passes: a row of `compiler_passes`."""

    step: int
    pipeline: str | None
    compiler_pass: str | None
    digest: int

    @property
    def key(self) -> tuple[str | None, str | None]:
        """What names the pass in another compilation, where it has another number."""
        return self.pipeline, self.compiler_pass

    @property
    def name(self) -> str:
        """The pass in words."""
        if self.pipeline is None:
            return "after the last text"
        if self.compiler_pass is None or self.compiler_pass == PIPELINE_START:
            return f"before {self.pipeline}"
        return self.compiler_pass


@dataclass(frozen=True)
class DifferingPass:
    """The first pass whose result differs.

    how: other, where the pass changed the program on both sides; gone or new, where it did on one
    side alone; else from, where it is not certain which of the passes from there on differs.
    """

    step: PassStep
    how: str


def first_difference(a: Sequence[PassStep], b: Sequence[PassStep]) -> DifferingPass | None:
    """The first pass that differs in two compilations of one program.

    None if nothing differs, if a side has no texts, or if the programs differ before all passes.

    >>> def steps(*pairs):
    ...     return [PassStep(n, "main", name, digest) for n, (name, digest) in enumerate(pairs)]
    >>> a = steps(("pipeline-start", 1), ("algsimp", 2), ("fusion", 3), ("dce", 4))
    >>> b = steps(("pipeline-start", 1), ("algsimp", 2), ("dce", 5))
    >>> first_difference(a, b).step.name, first_difference(a, b).how
    ('fusion', 'gone')
    >>> first_difference(b, a).how, first_difference(a, a)
    ('new', None)
    """
    of_a, of_b = _changing(a), _changing(b)
    if not of_a or not of_b or of_a[0].digest != of_b[0].digest:
        return None
    same = 0
    for one, other in zip(of_a, of_b, strict=False):
        if one.digest != other.digest:
            break
        same += 1
    rest_a, rest_b = of_a[same:], of_b[same:]
    if not rest_a and not rest_b:
        return None
    if not rest_a:
        return DifferingPass(rest_b[0], "new")
    if not rest_b:
        return DifferingPass(rest_a[0], "gone")
    next_a, next_b = rest_a[0], rest_b[0]
    if next_a.key == next_b.key:
        return DifferingPass(next_b, "other")
    # Of two passes, the one that the other side comes to later changed nothing on this one.
    later_in_a = any(step.key == next_b.key for step in rest_a)
    later_in_b = any(step.key == next_a.key for step in rest_b)
    if later_in_a and not later_in_b:
        return DifferingPass(next_a, "gone")
    if later_in_b and not later_in_a:
        return DifferingPass(next_b, "new")
    if next_a.pipeline == next_b.pipeline and not (later_in_a or later_in_b):
        return DifferingPass(next_a, "from")
    return DifferingPass(next_b if later_in_b else next_a, "from")


def _changing(steps: Sequence[PassStep]) -> list[PassStep]:
    """The steps that changed the program, after the first text."""
    found: list[PassStep] = []
    for step in steps:
        if not found or found[-1].digest != step.digest:
            found.append(step)
    return found
