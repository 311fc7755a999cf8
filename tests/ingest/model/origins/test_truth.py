"""The engine against buffers whose line and pass were read from the HLO text by hand."""

import pytest

from ....support.history import nights
from .. import test_plain_origins as plain
from .against_plain import attribution_of, engine_answers

ROWS = plain.ROWS


@pytest.fixture(scope="module")
def answers_of(tmp_path_factory):
    """Of a module: the engine's answers, and what the text says of its instructions."""
    known = {}

    def answers(dump, module):
        dump = plain.SAME.get(dump, dump)
        is_night = dump.startswith("nightly/")
        folder = nights() if is_night else plain.DUMPS
        text = plain.read(folder / dump.removeprefix("nightly/"), module)
        if text not in known:
            known[text] = engine_answers(attribution_of(text)), plain.rules_of(text)[0]
        return known[text]

    return answers


@pytest.mark.parametrize("row", ROWS, ids=plain.name_of)
def test_truth(row, answers_of):
    answers, rules = answers_of(row["dump"], row["module"])
    index = tuple(int(part) for part in row["shape_index"].strip("{}").split(",") if part)
    answer = answers[row["instruction"], index]
    assert answer is not None
    owner, _, pass_ = answer
    x = rules.module.instructions[owner]
    is_argument = rules.ways.is_argument((owner, ()))
    assert (rules.names.op_name(x) if is_argument else rules.names.line(x)) == row["expected"]
    assert pass_ == row["expected_pass"]
