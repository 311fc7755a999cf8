"""`memhouse check` on histories that go wrong: the verdict that a person would give, each time."""

import os
import shutil

import pytest

from ..support.command import run_memhouse
from ..support.warehouse import fill

# decode-v5e takes 67 MiB in the first of these nights, and 99 MiB in the second.
SIZES = {"small": "2026-10-06", "large": "2026-10-07"}
PASS, FAIL, NOT_JUDGED = 0, 1, 3
SMALL_ON_TWO = [("n1", "small", {"host": "a"}), ("n1", "small", {"host": "b"})]
SMALL_ON_THREE = [*SMALL_ON_TWO, ("n1", "small", {"host": "c"})]


def hosts(run, **sizes):
    """The parts of a run, in the order in which they enter."""
    return [(run, size, {"host": host}) for host, size in sizes.items()]


# What enters one after the other: run, what the night holds, and options; those of `check`; its
# exit status, and what its first line says of the run.
CASES = {
    # --- when ---
    "a night without times of files grew": (
        [("n1", "small"), ("n2", "large", {"mtime": 0})],
        (),
        (FAIL, "n2", "1 of 1 fail"),
    ),
    "all nights without times of files": (
        [("n1", "small", {"mtime": 0}), ("n2", "large", {"mtime": 0})],
        (),
        (FAIL, "n2", "1 of 1 fail"),
    ),
    "files of 2099 last night, and tonight grew": (
        [("n1", "small", {"mtime": 4_070_908_800}), ("n2", "large")],
        (),
        (FAIL, "n2", "1 of 1 fail"),
    ),
    "files of 2099 tonight": (
        [("n1", "small"), ("n2", "small", {"mtime": 4_070_908_800}), ("n3", "large")],
        (),
        (FAIL, "n3", "1 of 1 fail"),
    ),
    "tonight is earlier than last night but for its offset": (
        [("2026-10-01T23:00Z", "small"), ("2026-10-01T22:00-05:00", "large")],
        (),
        (FAIL, "2026-10-01T22:00-05:00", "1 of 1 fail"),
    ),
    "tonight is later than last night but for its offset": (
        [("2026-10-01T22:00-05:00", "large"), ("2026-10-01T23:00Z", "small")],
        (),
        (NOT_JUDGED, "2026-10-01T23:00Z", "not judged (no baseline), 1 new"),
    ),
    "an old night that is ingested late is judged, and not the newest": (
        [("2026-10-01", "small"), ("2026-10-03", "small"), ("2026-10-02", "large")],
        (),
        (FAIL, "2026-10-02", "1 of 1 fail"),
    ),
    # --- no baseline ---
    "the first night": (
        [("n1", "small")],
        (),
        (NOT_JUDGED, "n1", "not judged (no baseline), 1 new"),
    ),
    "the first night, and a baseline is required": (
        [("n1", "small")],
        ("--require-baseline",),
        (FAIL, "n1", "1 of 1 fail"),
    ),
    "a pull request before main has a run": (
        [("p1", "small", {"branch": "pr-7"}), ("m1", "small", {"branch": "main"})],
        ("--run", "p1"),
        (NOT_JUDGED, "p1", "not judged (no baseline), 1 new"),
    ),
    "some judged, one new": (
        [("n1", "small"), ("n2", "small", {"beside": "more"})],
        (),
        (PASS, "n2", "1 pass, 1 new"),
    ),
    "some judged, one new, and a baseline is required": (
        [("n1", "small"), ("n2", "small", {"beside": "more"})],
        ("--require-baseline",),
        (FAIL, "n2", "1 of 2 fail"),
    ),
    "a branch that compiles nothing that main does": (
        [("m1", "small", {"branch": "main"}), ("p1", "large", {"branch": "p", "named": "other"})],
        (),
        (NOT_JUDGED, "p1", "not judged (no baseline), 1 new, 1 warning"),
    ),
    # --- a renamed branch ---
    "a renamed branch": (
        [("n1", "small", {"branch": "master"}), ("n2", "large", {"branch": "main"})],
        (),
        (NOT_JUDGED, "n2", "not judged (no baseline), 1 new"),
    ),
    "a renamed branch whose history was carried over": (
        [
            ("n1", "small", {"branch": "develop"}),
            ("n2", "small", {"branch": "develop"}),
            ("n3", "large", {"branch": "trunk"}),
            ("label", "--rename", "branch=develop:trunk"),
        ],
        (),
        (FAIL, "n3", "1 of 1 fail"),
    ),
    # --- nothing compiled ---
    "an empty night": (
        [("n1", "small"), ("n2", None)],
        (),
        (NOT_JUDGED, "n2", "not judged (no programs)"),
    ),
    "an empty night, and a baseline is required": (
        [("n1", "small"), ("n2", None)],
        ("--require-baseline",),
        (NOT_JUDGED, "n2", "not judged (no programs)"),
    ),
    "the first night is empty": (
        [("n1", None)],
        (),
        (NOT_JUDGED, "n1", "not judged (no programs)"),
    ),
    "after an empty night": (
        [("n1", "small"), ("n2", None), ("n3", "large")],
        (),
        (FAIL, "n3", "1 of 1 fail"),
    ),
    "a pull request after an empty night of main": (
        [
            ("n1", "small", {"branch": "main"}),
            ("n2", None, {"branch": "main"}),
            ("p1", "large", {"branch": "pr-7"}),
        ],
        (),
        (FAIL, "p1", "1 of 1 fail"),
    ),
    "a host is missing after an empty night": (
        [*SMALL_ON_TWO, ("n2", None), *hosts("n3", a="small")],
        (),
        (NOT_JUDGED, "n3", "not judged (b missing), 1 pass"),
    ),
    # --- hosts ---
    "all hosts as they were": (
        [*SMALL_ON_TWO, *hosts("n2", b="small", a="small")],
        (),
        (PASS, "n2", "all 2 pass, nothing changed"),
    ),
    "a host that grew came first": (
        [*SMALL_ON_THREE, *hosts("n2", a="large", b="small", c="small")],
        (),
        (FAIL, "n2", "1 of 3 fail"),
    ),
    "a host that grew came in the middle": (
        [*SMALL_ON_THREE, *hosts("n2", b="small", a="large", c="small")],
        (),
        (FAIL, "n2", "1 of 3 fail"),
    ),
    "a host that grew came last": (
        [*SMALL_ON_THREE, *hosts("n2", b="small", c="small", a="large")],
        (),
        (FAIL, "n2", "1 of 3 fail"),
    ),
    "a host is missing": (
        [*SMALL_ON_THREE, *hosts("n2", a="small", c="small")],
        (),
        (NOT_JUDGED, "n2", "not judged (b missing), 2 pass"),
    ),
    "a host is missing, and another grew": (
        [*SMALL_ON_THREE, *hosts("n2", a="large", c="small")],
        (),
        (FAIL, "n2", "1 of 3 fail, b missing"),
    ),
    "a host is missing, and the limits let go what is gone": (
        [*SMALL_ON_THREE, *hosts("n2", a="small", c="small")],
        ("--limits", 'gone = "pass"'),
        (PASS, "n2", "all 2 pass"),
    ),
    "a host came, but compiled nothing": (
        [*SMALL_ON_TWO, *hosts("n2", a="small", b=None)],
        (),
        (FAIL, "n2", "1 of 2 fail"),
    ),
    "a host more": (
        [*SMALL_ON_TWO, *hosts("n2", a="small", b="small", c="small")],
        (),
        (PASS, "n2", "2 pass, 1 new"),
    ),
    "hosts have other names each night": (
        [*SMALL_ON_TWO, *hosts("n2", x="small", y="small")],
        (),
        (PASS, "n2", "all 2 pass"),
    ),
    "a pull request lacks a host of main": (
        [
            ("n1", "small", {"host": "a", "branch": "main"}),
            ("n1", "small", {"host": "b", "branch": "main"}),
            ("p1", "small", {"host": "a", "branch": "pr-7"}),
        ],
        (),
        (NOT_JUDGED, "p1", "not judged (b missing), 1 pass"),
    ),
}


@pytest.fixture
def night(db, nights, tmp_path):
    """Lets a night enter the warehouse, or runs another command."""

    def enter(run, holds, options=None):
        if run == "label":
            assert run_memhouse(run, holds, options, "--db", db).returncode == 0
            return
        given = dict(options or {})
        folder = tmp_path / run / (given.get("host") or "one") / run
        folder.mkdir(parents=True)
        names = [given.pop("named", "decode"), *filter(None, [given.pop("beside", None)])]
        for name in names if holds else ():
            shutil.copytree(nights / SIZES[holds] / "decode-v5e", folder / name)
        mtime = given.pop("mtime", None)
        for file in folder.rglob("*") if mtime is not None else ():
            os.utime(file, (mtime, mtime))
        host = given.pop("host", None)
        (summary,) = fill(db, folder, run_id=run, host=host, labels=given)
        assert bool(summary.dumps) == bool(holds)

    return enter


@pytest.mark.parametrize(("entered", "options", "expected"), CASES.values(), ids=CASES)
def test_a_verdict(db, night, limits, entered, options, expected):
    for step in entered:
        night(*step)
    if options[:1] == ("--limits",):
        options = limits(options[1])
    done = run_memhouse("check", "--db", db, *options)
    status, run, said = expected
    first = done.stdout.splitlines()[0]
    assert (done.returncode, first) == (status, f"### memhouse: peak memory of `{run}`: {said}")
