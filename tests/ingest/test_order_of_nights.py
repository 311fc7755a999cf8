"""A run stands at the date that it claims, else where it enters: no file's time orders anything."""

import os
import shutil
from datetime import datetime, timedelta

import pytest

import memhouse
from memhouse.ingest.choose_run import claim
from memhouse.schema.errors import UsageError

from ..support.clock import at
from ..support.warehouse import fill, rows, writing

IN_ORDER = "SELECT run_id FROM internal.lineages ORDER BY run_number"
NOW = datetime(2026, 11, 3, 5, 12, 9)
DAY = timedelta(days=1)
# As in container layers and in archives that can be made again, and of a clock that is wrong.
FILE_TIMES = [0, 4_080_000_000]


def utc(*date):
    return datetime(*date)


@pytest.fixture
def train(tmp_path, nights):
    """Dumps a workload as in a night of the ten nights, with files of a time, into a folder."""

    def dump(night, time, name="dumps", workload="llama-cpu"):
        folder = tmp_path / name
        shutil.copytree(nights / night / workload, folder / workload, dirs_exist_ok=True)
        for file in (folder / workload).iterdir():
            os.utime(file, (time, time))
        return folder

    return dump


NAMED = {
    "2026-10-01": utc(2026, 10, 1),
    "night-2026-10-01-v5e": utc(2026, 10, 1),
    "2026-10-01T03:30": utc(2026, 10, 1, 3, 30),
    "2026-10-01_0330": utc(2026, 10, 1, 3, 30),
    "2026-10-01 03:30:07": utc(2026, 10, 1, 3, 30, 7),
    "2026-10-01T03:30Z": utc(2026, 10, 1, 3, 30),
    "2026-10-01T03:30+02:00": utc(2026, 10, 1, 1, 30),
    "2026-10-01T03:30-0800-nightly": utc(2026, 10, 1, 11, 30),
    "2026-10-01T03:30+05:45": utc(2026, 9, 30, 21, 45),
    "2026-10-01_llama": utc(2026, 10, 1),
    # These digits are no time and no offset.
    "2026-10-01_8192": utc(2026, 10, 1),
    "2026-10-01T03:30-9999": utc(2026, 10, 1, 3, 30),
    "2026-13-01": None,
    "build-12026-10-01": None,
    "night": None,
    # The time of a session of the profiler.
    "2026_10_01_03_30_07": utc(2026, 10, 1, 3, 30, 7),
}


def test_a_run_claims_the_date_in_its_name():
    with at(NOW):
        assert {name: claim(None, name) for name in NAMED} == NAMED
        # What is said is more than a name; without a time zone it is UTC.
        for name in NAMED:
            assert claim(NOW, name) == claim(NOW.replace(tzinfo=None), name) == NOW


def test_a_date_at_which_nobody_can_have_compiled_is_refused():
    with at(NOW):
        for time in (utc(2015, 1, 1), NOW + DAY):
            assert claim(time, "night") == claim(None, time.isoformat()) == time
        for time in (
            utc(2014, 12, 31, 23, 59, 59),
            NOW + DAY + timedelta(seconds=1),
            utc(2099, 1, 1),
        ):
            with pytest.raises(UsageError, match=str(time.year)):
                claim(time, "night")
            name = f"{time:%Y-%m-%dT%H:%M:%S}"
            with pytest.raises(UsageError, match=f"{name}.*--at"):
                claim(None, name)


def test_a_refused_date_stores_nothing(train, db):
    with at(NOW), pytest.raises(UsageError, match="2099-01-01"):
        fill(db, train("2026-10-01", 0, "2099-01-01"))
    assert rows(db, "SELECT COUNT(*) FROM runs") == rows(db, "SELECT COUNT(*) FROM journal")
    assert rows(db, "SELECT COUNT(*) FROM runs") == [(0,)]


def test_nights_stand_where_they_enter_whatever_the_times_of_their_files(train, db):
    """The second night has grown, and is judged against the first."""
    times = FILE_TIMES[::-1]
    for day, (night, time) in enumerate(zip(["2026-10-01", "2026-10-05"], times, strict=True)):
        with at(NOW + day * DAY):
            fill(db, train(night, time))
    later = f"dumps@{NOW + DAY:%Y-%m-%dT%H:%M:%S}"
    assert rows(db, IN_ORDER) == [("dumps",), (later,)]
    assert rows(db, "SELECT run_at, epoch(compiled_at) FROM runs ORDER BY run_at") == [
        (NOW, times[0]),
        (NOW + DAY, times[1]),
    ]
    with memhouse.open(db, read_only=True) as warehouse:
        found = warehouse.check()
    assert found.run_id == later
    assert found.breaches


def test_claims_order_runs_and_the_entry_those_without(train, db):
    """A run that enters late for an early date stands there; a correction moves a run."""
    claims = {"c": utc(2026, 11, 4), "none": None, "a": utc(2026, 11, 2), "same": utc(2026, 11, 2)}
    for number, (name, claimed) in enumerate(claims.items()):
        with at(NOW + number * timedelta(hours=1)):
            fill(db, train("2026-10-01", FILE_TIMES[number % 2], name), run_at=claimed)
    assert rows(db, IN_ORDER) == [("a",), ("same",), ("none",), ("c",)]
    with at(NOW + DAY):
        fill(db, train("2026-10-01", 0, "a"), run_at=NOW + DAY)
    assert rows(db, IN_ORDER) == [("same",), ("none",), ("c",), ("a",)]
    assert rows(db, "SELECT run_at, claimed_at FROM runs WHERE run_id = 'a'") == [
        (NOW + DAY, NOW + DAY)
    ]


def test_what_entered_or_claims_to_be_within_the_age_is_kept(train, db):
    """`prune --keep`: a run goes whose claim and whose entry, of all its parts, are older."""
    old, new = NOW - 40 * DAY, NOW - DAY
    entered_and_claimed = {
        "old": (old, None),
        "old-claims-old": (old, old - DAY),
        "claims-old": (new, old),
        "new": (new, None),
    }
    for name, (entered, claimed) in entered_and_claimed.items():
        with at(entered):
            fill(db, train("2026-10-01", 0, name), run_at=claimed)
    with at(old):
        fill(db, train("2026-10-01", 0, "a"), run_id="parts", host="a")
    with at(new):
        fill(db, train("2026-10-01", 0, "b"), run_id="parts", host="b")
    with at(NOW), memhouse.open(db) as warehouse:
        assert warehouse.prune(keep="30d", dry_run=True).run_ids == ["old-claims-old", "old"]
        assert set(warehouse.prune(keep="30d").run_ids) == {"old-claims-old", "old"}
    with at(NOW + 40 * DAY), writing(db) as store:
        assert set(store.runs_before(NOW)) == {"claims-old", "new", "parts"}


def test_a_run_whose_claim_is_newer_than_its_entry_is_kept(train, db):
    with at(NOW):
        fill(db, train("2026-10-01", 0), run_at=NOW + DAY)
    with writing(db) as store:
        assert store.runs_before(NOW + DAY) == []
        assert store.runs_before(NOW + DAY + DAY) == ["dumps"]
