"""The work and the memory that a program takes grow as the program does: counted, not timed."""

import sys
import tracemalloc
from math import log2

import pytest

from memhouse.ingest.derive import derive
from memhouse.ingest.module_rows import build_module
from memhouse.ingest.readers import lines
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.xla.parts import Parts

ARRAY = "f32[16]{0}"


def chain(count):
    """Each instruction reads the one before."""
    lines = [f"%n.{i} = {ARRAY} negate(%n.{i - 1})" for i in range(1, count + 1)]
    lines[0] = f"%n.1 = {ARRAY} negate(%p)"
    return program(lines, ARRAY)


def star(count):
    """All read one argument, and all are results."""
    lines = [f"%n.{i} = {ARRAY} negate(%p)" for i in range(1, count + 1)]
    result = f"({', '.join([ARRAY] * count)})"
    names = ", ".join(f"%n.{i}" for i in range(1, count + 1))
    return program([*lines, f"%t = {result} tuple({names})"], result)


def nest(count):
    """All are live together, and each ends before the one that was made before it."""
    half = max(count // 2, 2)
    lines = [f"%n.{i} = {ARRAY} negate(%p)" for i in range(1, half + 1)]
    last = f"n.{half}"
    for i in range(half - 1, 0, -1):
        lines.append(f"%s.{i} = {ARRAY} add(%{last}, %n.{i})")
        last = f"s.{i}"
    return program(lines, ARRAY)


def program(lines, result):
    *body, root = (f"  {line}" for line in lines)
    header = f"HloModule m, is_scheduled=true, entry_computation_layout={{({ARRAY})->{result}}}"
    entry = ("ENTRY %main (p: f32[16]) -> f32[16] {", f"  %p = {ARRAY} parameter(0)")
    return "\n".join([header, "", *entry, *body, f"  ROOT {root.strip()}", "}", ""])


def read(text):
    parts = Parts(program=read_hlo_text(lines.split_lines(text.encode())))
    derivation = derive(parts, "cpu")
    assert derivation.notes.why_no_figures is None
    return build_module(derivation, "cpu")


def calls(text):
    """The calls of Python and C functions that reading takes."""
    count = 0

    def called(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


def peak_bytes(text):
    """The most bytes that Python holds at one time."""
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cost", "count"), [(calls, 500), pytest.param(peak_bytes, 1500, marks=pytest.mark.slow)]
)
def test_four_times_the_program_is_four_times_the_work(cost, count):
    powers = {}
    for make in (chain, star, nest):
        read(make(10))
        once, four_times = cost(make(count)), cost(make(4 * count))
        powers[make.__name__] = log2(four_times / once) / 2
    # Python shares numbers up to 256. A bit for each pair of instructions would be 1.2.
    assert {shape: power for shape, power in powers.items() if power > 1.1} == {}
