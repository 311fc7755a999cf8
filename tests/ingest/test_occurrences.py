"""Dumps of one name in a run have different numbers, whichever of them are ingested again."""

import shutil
from pathlib import Path

import pytest

from ..support.command import run_memhouse
from ..support.dumps import one_file
from ..support.warehouse import fill, rows

NUMBERS = "SELECT module_number, occurrence FROM dumps ORDER BY ALL"


@pytest.fixture
def add(tmp_path):
    """Adds the dump of a number to the folder of a night; all have one name."""

    def dump(number):
        folder = tmp_path / "night"
        folder.mkdir(exist_ok=True)
        name = f"module_{number:04}.f.after_optimizations-buffer-assignment.txt"
        return Path(shutil.copy(one_file("seeds/002*"), folder / name))

    return dump


def test_a_dump_that_vanished_keeps_its_number_and_the_others_theirs(add, db):
    first, second = add(1), add(2)
    fill(db, first.parent)
    first.unlink()
    fill(db, second.parent)
    assert rows(db, NUMBERS) == [(1, 1), (2, 2)]
    assert run_memhouse("verify", "--db", db).returncode == 0


def test_dumps_that_are_all_there_are_numbered_in_dump_order(add, db):
    fill(db, add(2).parent)
    fill(db, add(1).parent)
    assert rows(db, NUMBERS) == [(1, 1), (2, 2)]
