"""The examples of the data dictionary: each runs, and answers with rows on labelled nights."""

import itertools
import re
from xml.etree import ElementTree

import memhouse
from memhouse.docs.data_dictionary import pages, picture, thirty_questions
from memhouse.queries.catalogue import examples, metadata, public_macros, public_views
from memhouse.schema.arrow import public_tables

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
    "The programs that are gone, and since when",
}
THERE = {*public_tables(), *public_views(), *public_macros()}


def test_the_pages_have_each_relation_and_each_question_once():
    index, *others = (page() for page in pages().values())
    text = "\n".join(others)
    assert sorted(re.findall(r"^## (.*)", text, re.MULTILINE)) == sorted(THERE)
    assert sorted(re.findall(r"^\| \[(\w+)\]", index, re.MULTILINE)) == sorted(THERE)
    columns = {column.name for table in metadata().tables.values() for column in table.c}
    assert [name for name in columns if f"| `{name}` | " not in text] == []
    assert thirty_questions().count("```sql") == 30


def test_the_picture_has_each_table_and_its_foreign_keys():
    drawn = ElementTree.fromstring(picture())
    assert sorted(str(text.text) for text in drawn.iter("text")) == sorted(public_tables())
    assert len([*drawn.iter("path")]) > len(public_tables())


def test_every_example_answers(own, filled):
    """On the ten nights with labels as a nightly gives them, or else on all samples."""
    assert examples().keys() == THERE
    assert max(map(len, examples().values())) <= 5
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
