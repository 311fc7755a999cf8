"""The examples of the data dictionary: each runs, and answers with rows on labelled nights."""

import itertools
from pathlib import Path

import memhouse
from memhouse import queries
from memhouse.queries.catalogue import examples, public_macros, public_views
from memhouse.queries.dictionary import thirty_questions
from memhouse.schema.tables import INTERNAL, metadata

from ..support.history import NIGHTS
from ..support.warehouse import reading

# The samples are whole and of no hosts, and no growth was accepted; a message of XLA has no list of
# buffers. The dump that `test_passes.py` has answers of passes.
SILENT = {
    "Which passes of the compiler moved the estimated peak",
    "How many texts between passes each program has",
    "What passes did to large buffers of the peak",
    "What is wrong with files, or was not understood",
    "Growth that was accepted",
    "The largest where memory ran out",
    "The hosts that have other programs than most",
}


def test_every_example_answers(own, filled):
    """On the ten nights with labels as a nightly gives them, or else on all samples."""
    there = {*metadata.tables, *public_views(), *public_macros()} - INTERNAL
    assert examples().keys() == there
    assert max(map(len, examples().values())) <= 5
    assert thirty_questions().count("```sql") == 30
    page = Path(queries.__file__).parents[1] / "docs" / "thirty-questions.md"
    assert page.read_text() == thirty_questions()
    with memhouse.open(own) as warehouse:
        for number, night in enumerate(NIGHTS):
            labels = {"jax": f"0.{9 + number // 5}.0", "libtpu": "0.0.20", "batch": "8"}
            labels |= {"commit": f"{number:07x}", "branch": "main"}
            warehouse.label(night, labels=labels)
    silent = set()
    with reading(own) as nights, reading(filled) as samples:
        for example in itertools.chain(*examples().values()):
            if not any(store.rows(example.sql).num_rows for store in (nights, samples)):
                silent.add(example.title)
    assert silent == SILENT
