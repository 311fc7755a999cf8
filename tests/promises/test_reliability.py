"""docs/reliability.md names only tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_promise_names_tests_that_exist():
    text = (ROOT / "docs/reliability.md").read_text()
    named = NAMED.findall(text)
    assert len(named) == text.count("::") > 30
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(), f"{file}::{test}"
