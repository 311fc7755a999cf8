"""The work and the memory that a program takes grow as the program does: counted, not timed."""

import importlib
import sys
import tracemalloc
from math import log2
from pathlib import Path

import pytest

from memhouse.ingest.join import Told, join_parts, work_out
from memhouse.ingest.readers import lines
from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.xla.parts import Parts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHAPES = ("chain", "star", "nest")


def read(text):
    parts = Parts(hlo=read_hlo_text(lines.split_lines(text.encode())))
    found = work_out(Told(parts, "cpu"))
    assert found.why_not is None
    return join_parts(found)


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
    """The most bytes that numpy and Python hold at one time."""
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# The bytes of a chain measured 1.17 at these sizes; the quadratic tables that were here, 2.
@pytest.mark.parametrize(
    ("cost", "most", "count"),
    [(calls, 1.1, 500), pytest.param(peak_bytes, 1.25, 1500, marks=pytest.mark.scheduled)],
)
def test_twice_the_program_is_twice_the_work(monkeypatch, cost, most, count):
    monkeypatch.syspath_prepend(BENCHMARKS)
    grown = {}
    for shape in SHAPES:
        make = importlib.import_module("made_programs").SHAPES[shape]
        read(make(10))
        once, twice, four = (cost(make(n)) for n in (count, 2 * count, 4 * count))
        grown[shape] = log2((four - twice) / max(twice - once, 1))
    assert {shape: power for shape, power in grown.items() if power > most} == {}
