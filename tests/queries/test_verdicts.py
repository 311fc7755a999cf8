"""`check` on histories that go wrong: the verdict that a person would give, each time."""

import os
import shutil
from collections import Counter

import pytest

import memhouse
from memhouse.queries.label import rename_label

from ..support.dumps import copy_dump
from ..support.shared import shared
from ..support.warehouse import fill

# jit_mixed takes 129 KiB in the first of these dumps, and 145 KiB in the second.
SIZES = {"small": "cpu/jax-0.4.35/*jit_mixed*", "large": "cpu/jax-0.9.0/*jit_mixed*"}
PASS, FAIL, NOT_JUDGED = "pass", "fail", "not judged"
REQUIRED = {"require_baseline": True}
SMALL_ON_TWO = [("n1", "small", {"host": "a"}), ("n1", "small", {"host": "b"})]
SMALL_ON_THREE = [*SMALL_ON_TWO, ("n1", "small", {"host": "c"})]


def hosts(run, **sizes):
    """The parts of a run, in the order in which they enter."""
    return [(run, size, {"host": host}) for host, size in sizes.items()]


# What enters one after the other: run, what the night holds, and options; those of `check`; its
# outcome, the run, and what is said of how many programs.
CASES = {
    # --- when ---
    "a night without times of files grew": (
        [("n1", "small"), ("n2", "large", {"mtime": 0})],
        {},
        (FAIL, "n2", {"fail": 1}),
    ),
    "files of 2099 last night, and tonight grew": (
        [("n1", "small", {"mtime": 4_070_908_800}), ("n2", "large")],
        {},
        (FAIL, "n2", {"fail": 1}),
    ),
    "files of 2099 tonight": (
        [("n1", "small"), ("n2", "small", {"mtime": 4_070_908_800}), ("n3", "large")],
        {},
        (FAIL, "n3", {"fail": 1}),
    ),
    "tonight is earlier than last night but for its offset": (
        [("2026-10-01T23:00Z", "small"), ("2026-10-01T22:00-05:00", "large")],
        {},
        (FAIL, "2026-10-01T22:00-05:00", {"fail": 1}),
    ),
    "tonight is later than last night but for its offset": (
        [("2026-10-01T22:00-05:00", "large"), ("2026-10-01T23:00Z", "small")],
        {},
        (NOT_JUDGED, "2026-10-01T23:00Z", {"first": 1}),
    ),
    "an old night that is ingested late is judged, and not the newest": (
        [("2026-10-01", "small"), ("2026-10-03", "small"), ("2026-10-02", "large")],
        {},
        (FAIL, "2026-10-02", {"fail": 1}),
    ),
    # --- no baseline ---
    "the first night": (
        [("n1", "small")],
        {},
        (NOT_JUDGED, "n1", {"first": 1}),
    ),
    "the first night, and a baseline is required": (
        [("n1", "small")],
        REQUIRED,
        (FAIL, "n1", {"fail": 1}),
    ),
    "a pull request before main has a run": (
        [("p1", "small", {"branch": "pr-7"}), ("m1", "small", {"branch": "main"})],
        {"run": "p1"},
        (NOT_JUDGED, "p1", {"first": 1}),
    ),
    "some judged, one new": (
        [("n1", "small"), ("n2", "small", {"beside": "more"})],
        {},
        (PASS, "n2", {"new": 1, "pass": 1}),
    ),
    "some judged, one new, and a baseline is required": (
        [("n1", "small"), ("n2", "small", {"beside": "more"})],
        REQUIRED,
        (FAIL, "n2", {"fail": 1, "pass": 1}),
    ),
    "a branch that compiles nothing that main does": (
        [("m1", "small", {"branch": "main"}), ("p1", "large", {"branch": "p", "named": "other"})],
        {},
        (NOT_JUDGED, "p1", {"new": 1, "warn": 1}),
    ),
    # --- a renamed branch ---
    "a renamed branch": (
        [("n1", "small", {"branch": "master"}), ("n2", "large", {"branch": "main"})],
        {},
        (NOT_JUDGED, "n2", {"first": 1}),
    ),
    "a renamed branch whose history was carried over": (
        [
            ("n1", "small", {"branch": "develop"}),
            ("n2", "small", {"branch": "develop"}),
            ("n3", "large", {"branch": "trunk"}),
            ("rename", "branch=develop:trunk"),
        ],
        {},
        (FAIL, "n3", {"fail": 1}),
    ),
    # --- nothing compiled ---
    "an empty night": (
        [("n1", "small"), ("n2", None)],
        {},
        (NOT_JUDGED, "n2", {"missing": 1}),
    ),
    "an empty night, and a baseline is required": (
        [("n1", "small"), ("n2", None)],
        REQUIRED,
        (NOT_JUDGED, "n2", {"missing": 1}),
    ),
    "the first night is empty": (
        [("n1", None)],
        {},
        (NOT_JUDGED, "n1", {}),
    ),
    "after an empty night": (
        [("n1", "small"), ("n2", None), ("n3", "large")],
        {},
        (FAIL, "n3", {"fail": 1}),
    ),
    "a pull request after an empty night of main": (
        [
            ("n1", "small", {"branch": "main"}),
            ("n2", None, {"branch": "main"}),
            ("p1", "large", {"branch": "pr-7"}),
        ],
        {},
        (FAIL, "p1", {"fail": 1}),
    ),
    "a host is missing after an empty night": (
        [*SMALL_ON_TWO, ("n2", None), *hosts("n3", a="small")],
        {},
        (NOT_JUDGED, "n3", {"missing b": 1, "pass": 1}),
    ),
    # --- hosts ---
    "all hosts as they were": (
        [*SMALL_ON_TWO, *hosts("n2", b="small", a="small")],
        {},
        (PASS, "n2", {"pass": 2}),
    ),
    "a host that grew came first": (
        [*SMALL_ON_THREE, *hosts("n2", a="large", b="small", c="small")],
        {},
        (FAIL, "n2", {"fail": 1, "pass": 2}),
    ),
    "a host that grew came last": (
        [*SMALL_ON_THREE, *hosts("n2", b="small", c="small", a="large")],
        {},
        (FAIL, "n2", {"fail": 1, "pass": 2}),
    ),
    "a host is missing": (
        [*SMALL_ON_THREE, *hosts("n2", a="small", c="small")],
        {},
        (NOT_JUDGED, "n2", {"missing b": 1, "pass": 2}),
    ),
    "a host is missing, and another grew": (
        [*SMALL_ON_THREE, *hosts("n2", a="large", c="small")],
        {},
        (FAIL, "n2", {"fail": 1, "missing b": 1, "pass": 1}),
    ),
    "a host is missing, and the limits let go what is gone": (
        [*SMALL_ON_THREE, *hosts("n2", a="small", c="small")],
        {"toml": 'gone = "pass"'},
        (PASS, "n2", {"pass": 3}),
    ),
    "a host came, but compiled nothing": (
        [*SMALL_ON_TWO, *hosts("n2", a="small", b=None)],
        {},
        (FAIL, "n2", {"fail": 1, "pass": 1}),
    ),
    "a host more": (
        [*SMALL_ON_TWO, *hosts("n2", a="small", b="small", c="small")],
        {},
        (PASS, "n2", {"new": 1, "pass": 2}),
    ),
    "hosts have other names each night": (
        [*SMALL_ON_TWO, *hosts("n2", x="small", y="small")],
        {},
        (PASS, "n2", {"pass": 2}),
    ),
    "a pull request lacks a host of main": (
        [
            ("n1", "small", {"host": "a", "branch": "main"}),
            ("n1", "small", {"host": "b", "branch": "main"}),
            ("p1", "small", {"host": "a", "branch": "pr-7"}),
        ],
        {},
        (NOT_JUDGED, "p1", {"missing b": 1, "pass": 1}),
    ),
}


def enter(warehouse, folder, run, holds, options=None):
    """Lets a night enter the warehouse, or renames a branch."""
    if run == "rename":
        rename_label(warehouse.store, holds)
        return
    given = dict(options or {})
    host = given.pop("host", None)
    folder = folder / run / (host or "one") / run
    folder.mkdir(parents=True)
    for name in filter(None, (given.pop("named", "job"), given.pop("beside", None))):
        if holds:
            copy_dump(SIZES[holds], folder / name)
    mtime = given.pop("mtime", None)
    for file in folder.rglob("*") if mtime is not None else ():
        os.utime(file, (mtime, mtime))
    summary = warehouse.ingest(folder, run=run, host=host, labels=given)
    assert bool(summary.dumps) == bool(holds)


def told(verdict):
    if verdict.outcome != "not judged":
        return verdict.outcome
    return f"{verdict.status} {verdict.host}" if verdict.host else verdict.status


@pytest.mark.parametrize(("entered", "options", "expected"), CASES.values(), ids=CASES)
def test_a_verdict(db, tmp_path, entered, options, expected):
    shutil.copy(shared("empty.duckdb", fill), db)
    options = dict(options)
    if toml := options.pop("toml", None):
        options["limits"] = tmp_path / "limits.toml"
        options["limits"].write_text(toml)
    with memhouse.open(db) as warehouse:
        for step in entered:
            enter(warehouse, tmp_path, *step)
        found = warehouse.check(**options)
    counted = dict(Counter(map(told, found.verdicts)))
    assert (found.outcome, found.run_id, counted) == expected
