"""Series of dumps: which dump follows which."""

import shutil
from itertools import groupby

from memhouse.schema.history.pairing import Dump, Series, _align, match_dumps

from ..support.dumps import copy_dump
from ..support.warehouse import fill, rows, writing

# A module of one name several times in a run: (dump_id, run, program_id, signature_id).
CHAINS = {
    "a new one compiled first moves none of the others": (
        [(11, 1, 100), (12, 1, 200), (21, 2, 300), (22, 2, 100), (23, 2, 200)],
        {11: 1, 12: 2, 21: 3, 22: 1, 23: 2},
    ),
    "two swap their places": (
        [(11, 1, 100), (12, 1, 200), (21, 2, 200), (22, 2, 100)],
        {11: 1, 12: 2, 21: 2, 22: 1},
    ),
    "both changed, their signatures did not": (
        [(11, 1, 100, 7), (12, 1, 200, 8), (21, 2, 201, 8), (22, 2, 101, 7)],
        {11: 1, 12: 2, 21: 2, 22: 1},
    ),
    "everything changed: as many as before follow in order": (
        [(11, 1, 100), (12, 1, 200), (21, 2, 101), (22, 2, 201)],
        {11: 1, 12: 2, 21: 1, 22: 2},
    ),
    "everything changed and one more came: nothing tells which is which": (
        [(11, 1, 100), (12, 1, 200), (21, 2, 101), (22, 2, 201), (23, 2, 301)],
        {11: 1, 12: 2, 21: 3, 22: 4, 23: 5},
    ),
    "one of two that are equal goes and comes back": (
        [(11, 1, 100), (12, 1, 100), (21, 2, 100), (31, 3, 100), (32, 3, 100)],
        {11: 1, 12: 2, 21: 1, 31: 1, 32: 2},
    ),
    "one of two comes back in another order, and both have changed": (
        [(11, 1, 100, 7), (12, 1, 200, 8), (21, 2, 200, 8), (31, 3, 201, 8), (32, 3, 101, 7)],
        {11: 1, 12: 2, 21: 2, 31: 2, 32: 1},
    ),
}


def dump(dump_id, program_id, signature_id=None, **columns):
    row = {
        "workload": "train",
        "module_name": "jit_step",
        "platform": "tpu",
        "occurrence": dump_id % 10,
        "skeleton_id": None,
        "total_bytes": 1 << 20,
        "is_tiny": False,
    }
    return Dump(dump_id=dump_id, program_id=program_id, signature_id=signature_id, **row | columns)


def test_a_dump_goes_on_with_its_series():
    for case, (dumps, numbers) in CHAINS.items():
        series, paired = [], {}
        for run, in_run in groupby(dumps, key=lambda row: row[1]):
            now = [dump(dump_id, *identities) for dump_id, _, *identities in in_run]
            goes_on = {m.dump: m.series for m in match_dumps(series, now, run)}
            for one in now:
                if one not in goes_on:
                    goes_on[one] = Series(len(series) + 1, len(series) + 1, one, run)
                    series.append(goes_on[one])
                goes_on[one].last, goes_on[one].run_number = one, run
                paired[one.dump_id] = goes_on[one].number
        assert paired == numbers, case


def test_those_of_one_signature_are_aligned_by_size():
    for before, now, pairs in (
        # A smaller one came first, and all shrank.
        ([128, 256, 512], [38, 77, 154, 307], [(0, 1), (1, 2), (2, 3)]),
        # The third of four went.
        ([64, 128, 256, 512], [64, 128, 512], [(0, 0), (1, 1), (3, 2)]),
        # Nothing tells of sizes that are not known: the first ones pair.
        ([None, None], [None, None, None], [(0, 0), (1, 1)]),
        ([8], [1000, 9], [(0, 1)]),
        ([8], [None, 1000], [(0, 1)]),
    ):
        assert _align(before, now) == pairs
        assert _align(now, before) == [(b, a) for a, b in pairs]


def test_trivial_programs_are_never_matched_across_both_names():
    """They are equal by chance."""
    before = dump(11, 100)
    for is_tiny, rules in ((True, []), (False, ["renamed"])):
        series = Series(1, 1, before._replace(is_tiny=is_tiny), 1)
        now = dump(21, 100, workload="other", module_name="jit_other", is_tiny=is_tiny)
        assert [match.matched_by for match in match_dumps([series], [now], 2)] == rules


def test_deleting_a_run_closes_the_series(own):
    query = """SELECT before.run_id, matched_by, cause IS NOT NULL FROM history
        INNER JOIN dumps AS before ON before.dump_id = history.previous_dump_id
        WHERE history.run_id = '2026-10-06' AND history.workload = 'llama-v5e'"""
    with writing(own) as store:
        store.delete_runs(["2026-10-05"])
    assert rows(own, query) == [("2026-10-04", "only", True)]


def test_a_platform_that_vanishes_leaves_the_other_alone(tmp_path, db):
    """The same module name on CPU and GPU: what is gone must not renumber what stays."""
    both = copy_dump("cpu/jax-0.10.2/module_0018*", tmp_path / "2026-11-01")
    for path in copy_dump("gpu/decode-h100/module_*after_opt*", tmp_path / "gpu").iterdir():
        path.rename(both / path.name.replace("module_0001.jit_generate", "module_0001.jit_mixed"))
    alone = shutil.copytree(both, tmp_path / "2026-11-02")
    for path in alone.glob("*cpu_after*"):
        path.unlink()
    fill(db, both, alone)
    assert rows(db, "SELECT run_id, platform, occurrence FROM dumps ORDER BY 1, 2") == [
        ("2026-11-01", "cpu", 1),
        ("2026-11-01", "gpu", 1),
        ("2026-11-02", "gpu", 1),
    ]
    assert rows(
        db,
        """SELECT run_id, platform, matched_by, is_last FROM history ORDER BY 1, 2""",
    ) == [
        ("2026-11-01", "cpu", None, True),
        ("2026-11-01", "gpu", None, False),
        ("2026-11-02", "gpu", "only", True),
    ]
