"""The engine's attribution against the plain rules: on every sample dump, on random programs.

They agree in all that is compared. What is not compared, and why:
- Values of reducers and of other computations without a time have no residual.
- Of the instructions that read a residual first at one time, in one fusion, any will do.
- A tuple's table has no origin; the plain rules know arrays only.
"""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings

from ....support.dumps import DUMPS
from ....support.rounds import rounds
from ..plain_names import JOINED, STRONG, WEAK
from ..random_programs import scheduled_hlo
from . import against_plain

# More are worked out in more than a second or two by the plain rules.
SMALL = 150_000


def text_of(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


TEXTS = {
    str(path.relative_to(DUMPS)): text
    for path in sorted(DUMPS.rglob("*after_optimizations.txt*"))
    if (text := text_of(path)).startswith("HloModule")
}


def parameters():
    """Every text, the long ones marked as slow."""
    for name, text in TEXTS.items():
        yield pytest.param(name, marks=[pytest.mark.slow] if len(text) > SMALL else [], id=name)


def check_scopes(text):
    """Each path's scope is the same."""
    found = against_plain.engine_scopes(against_plain.attribution_of(text))
    rules, _ = against_plain.plain_rules(text)
    for name, x in rules.module.instructions.items():
        has_path = rules.names.kind(x) in (JOINED, WEAK, STRONG)
        assert found.get(name) == ("/".join(rules.names.scope(x)) if has_path else None)


def check_residuals(text):
    """The same values are saved, in as many layers, untouched as long, read first by the same."""
    engine = against_plain.engine_residuals(against_plain.attribution_of(text))
    plain = against_plain.plain_residual_rows(text)
    assert {row for row, _ in engine} == {row for row, _ in plain}
    readers = dict(plain)
    for row, reader in engine:
        assert reader in readers[row] or (reader is None and not readers[row])


@pytest.mark.parametrize("name", list(parameters()))
def test_sample_dumps(name):
    text = TEXTS[name]
    assert against_plain.differences(text) == {}
    check_scopes(text)
    if "is_scheduled=true" in text[:5000]:
        check_residuals(text)


@settings(max_examples=rounds(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(scheduled_hlo(named=True))
def test_random_programs(text):
    assert against_plain.differences(text) == {}
    check_scopes(text)
    check_residuals(text)
