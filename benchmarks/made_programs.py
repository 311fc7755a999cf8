"""Made programs that grow: a chain, a star and a nest, and how the cost of reading them grows."""

from collections.abc import Callable
from itertools import pairwise
from time import process_time

from bench import Bench, measure
from exponents import growth_figure
from figures import Figure

from memhouse.ingest.join import Told, join_parts, work_out
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.parts import Parts

_ARRAY = "f32[16]{0}"


def chain(count: int) -> str:
    """Each instruction reads the one before."""
    lines = [
        f"%n.{i} = {_ARRAY} negate(%{'p' if i == 1 else f'n.{i - 1}'})" for i in range(1, count + 1)
    ]
    return _program(lines, _ARRAY)


def star(count: int) -> str:
    """All read one argument, and all are results."""
    lines = [f"%n.{i} = {_ARRAY} negate(%p)" for i in range(1, count + 1)]
    result = f"({', '.join([_ARRAY] * count)})"
    names = ", ".join(f"%n.{i}" for i in range(1, count + 1))
    return _program([*lines, f"%t = {result} tuple({names})"], result)


def nest(count: int) -> str:
    """All are live together, and each ends before the one that was made before it."""
    half = max(count // 2, 2)
    lines = [f"%n.{i} = {_ARRAY} negate(%p)" for i in range(1, half + 1)]
    last = f"n.{half}"
    for i in range(half - 1, 0, -1):
        lines.append(f"%s.{i} = {_ARRAY} add(%{last}, %n.{i})")
        last = f"s.{i}"
    return _program(lines, _ARRAY)


def _program(lines: list[str], result: str) -> str:
    *body, root = lines
    return "\n".join(
        [
            f"HloModule m, is_scheduled=true, entry_computation_layout={{({_ARRAY})->{result}}}",
            "",
            "ENTRY %main (p: f32[16]) -> f32[16] {",
            f"  %p = {_ARRAY} parameter(0)",
            *(f"  {line}" for line in body),
            f"  ROOT {root}",
            "}",
            "",
        ]
    )


SHAPES: dict[str, Callable[[int], str]] = {"chain": chain, "star": star, "nest": nest}


def made_programs(bench: Bench) -> list[Figure]:
    """How the CPU time of each stage grows with the instructions of a made program."""
    most = bench.options.values
    counts = [most // 16, most // 4, most, 4 * most]
    figures = []
    for shape, make in SHAPES.items():
        rounds = [[_stages(make(count)) for count in counts] for _ in range(bench.few_rounds)]
        for at, stage in enumerate(("reading", "working out", "joining")):
            curves = [
                {n: costs[at] for n, costs in zip(counts, found, strict=True)} for found in rounds
            ]
            figures.append(growth_figure(f"{stage} a {shape}", curves, "s"))
    return figures


def _stages(text: str) -> tuple[float, float, float]:
    """Seconds of CPU to read a text, to work out what follows from it, and to join the rows."""
    times = [process_time()]
    parts = Parts(hlo=read_hlo_text(split_lines(text.encode())))
    times.append(process_time())
    found = work_out(Told(parts, "cpu"))
    times.append(process_time())
    join_parts(found)
    times.append(process_time())
    reading, working, joining = (b - a for a, b in pairwise(times))
    return reading, working, joining


if __name__ == "__main__":
    measure([made_programs])
