"""The rows of the samples and of the ten nights are those that were approved.

`make approve` writes them anew; `git diff` then names each table, view and column that changed.
"""

import json

import pytest

from .support.golden import APPROVED, WAREHOUSES, digests


@pytest.mark.parametrize("name", WAREHOUSES)
def test_the_rows_are_the_approved_ones(name):
    approved = json.loads(APPROVED.read_text())[name]
    rows = digests(WAREHOUSES[name]())
    changed = [
        f"{relation}.{column}"
        for relation in sorted(approved.keys() | rows.keys())
        for column in sorted(approved.get(relation, {}).keys() | rows.get(relation, {}).keys())
        if approved.get(relation, {}).get(column) != rows.get(relation, {}).get(column)
    ]
    assert changed == [], "if this is meant: make approve"
