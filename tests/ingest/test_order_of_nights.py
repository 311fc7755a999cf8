"""A night that is ingested later comes later in the history, whatever the times of its files."""

import os
import shutil
from datetime import UTC, datetime

import pytest

from ..support.history import memhouse
from ..support.warehouse import fill, rows

IN_ORDER = "SELECT run_id, run_at FROM lineages INNER JOIN runs USING (run_id) ORDER BY run_number"
MIDNIGHT = datetime(2026, 11, 3, tzinfo=UTC)


def before_midnight(hour, minute=0):
    return datetime(2026, 11, 2, hour, minute, tzinfo=UTC)


@pytest.fixture
def train(tmp_path, nights):
    """Dumps a workload as in a night of the ten nights into a folder that has a date."""
    folder = tmp_path / "2026-11-03"

    def dump(workload, night, at):
        shutil.copytree(nights / night / workload, folder / workload, dirs_exist_ok=True)
        for file in (folder / workload).iterdir():
            os.utime(file, (at.timestamp(), at.timestamp()))
        return folder

    return dump


def test_a_later_night_follows_a_first_night_that_is_dated_in_local_time(train, db):
    """The name gives the first night midnight; the files of both nights are of the day before."""
    fill(db, train("llama-cpu", "2026-10-01", before_midnight(23)))
    fill(db, train("llama-cpu", "2026-10-05", before_midnight(23, 30)))
    assert rows(db, IN_ORDER) == [
        ("2026-11-03", MIDNIGHT),
        ("2026-11-03@2026-11-02T23:30:00", MIDNIGHT),
    ]
    grown = memhouse("check", "--db", db)
    assert grown.returncode == 1, grown.stdout


def test_a_later_night_of_older_files_follows_all_nights_before_it(train, db):
    """`rsync -t` and archives may give a folder older times than it had."""
    for name, hour in (("2026-10-01", 23), ("2026-10-04", 22), ("2026-10-07", 21)):
        fill(db, train("decode-v5e", name, before_midnight(hour)))
    assert rows(db, IN_ORDER) == [
        ("2026-11-03", MIDNIGHT),
        ("2026-11-03@2026-11-02T22:00:00", MIDNIGHT),
        ("2026-11-03@2026-11-02T21:00:00", MIDNIGHT),
    ]


def test_a_change_that_was_taken_back_is_a_night_though_its_files_are_of_the_day_before(train, db):
    """The later nights have the first night's time; their names have the times of their files."""
    taken_back = "2026-10-04"
    for minute, name in enumerate(("2026-10-01", taken_back, "2026-10-07", taken_back)):
        fill(db, train("decode-v5e", name, before_midnight(23, minute)))
    assert [run for run, _ in rows(db, IN_ORDER)][-1] == "2026-11-03@2026-11-02T23:03:00"
