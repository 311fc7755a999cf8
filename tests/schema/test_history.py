"""Chains of dumps: which dump follows which."""

import shutil

import pytest

from memhouse.schema.history import number_chains

from ..support.dumps import copy_dump
from ..support.history import NIGHTS, ingest_nights
from ..support.warehouse import fill, reading, rows, writing


def dump(dump_id, run_number, module_id, signature_id=None):
    return {
        "dump_id": dump_id,
        "run_number": run_number,
        "module_id": module_id,
        "signature_id": signature_id,
    }


@pytest.mark.parametrize(
    ("dumps", "numbers"),
    [
        # A new one compiled first moves none of the others.
        ([(11, 1, 100), (12, 1, 200), (21, 2, 300), (22, 2, 100), (23, 2, 200)],
         {11: 1, 12: 2, 21: 3, 22: 1, 23: 2}),
        # Two swap their places.
        ([(11, 1, 100), (12, 1, 200), (21, 2, 200), (22, 2, 100)], {11: 1, 12: 2, 21: 2, 22: 1}),
        # Both changed, their signatures did not.
        ([(11, 1, 100, 7), (12, 1, 200, 8), (21, 2, 201, 8), (22, 2, 101, 7)],
         {11: 1, 12: 2, 21: 2, 22: 1}),
        # Everything changed: as many as before follow in order.
        ([(11, 1, 100), (12, 1, 200), (21, 2, 101), (22, 2, 201)], {11: 1, 12: 2, 21: 1, 22: 2}),
        # Everything changed and one more came: nothing tells which is which.
        ([(11, 1, 100), (12, 1, 200), (21, 2, 101), (22, 2, 201), (23, 2, 301)],
         {11: 1, 12: 2, 21: 3, 22: 4, 23: 5}),
        # One of two that are equal goes and comes back.
        ([(11, 1, 100), (12, 1, 100), (21, 2, 100), (31, 3, 100), (32, 3, 100)],
         {11: 1, 12: 2, 21: 1, 31: 1, 32: 2}),
    ],
)  # fmt: skip
def test_a_dump_follows_its_chain(dumps, numbers):
    assert number_chains([dump(*row) for row in dumps]) == numbers


def stored(db):
    return rows(db, "SELECT * FROM history ORDER BY dump_id")


def assert_current(db):
    with reading(db) as store:
        assert sorted(store.worked_out_history().to_pylist(), key=lambda row: row["dump_id"]) == (
            store.rows("SELECT * FROM history ORDER BY dump_id").to_pylist()
        )


def test_the_chains_are_the_same_in_whatever_order_runs_are_ingested(nights, history, tmp_path):
    backwards = ingest_nights(tmp_path / "backwards.duckdb", nights, NIGHTS[::-1])
    assert stored(backwards) == stored(history)
    assert_current(backwards)


def test_a_night_that_is_missing_is_counted(history):
    missed = rows(
        history,
        """SELECT run_id, workload, missed_runs FROM history INNER JOIN dumps USING (dump_id)
        WHERE missed_runs > 0""",
    )
    assert missed == [("2026-10-08", "llama-cpu", 1)]


def test_a_chain_is_told_by_its_links(history):
    chain = rows(
        history,
        """SELECT chain_index, dumps.run_id, before.run_id, matched_by, level_index, is_last
        FROM history INNER JOIN dumps USING (dump_id)
        LEFT JOIN dumps AS before ON before.dump_id = history.compared_dump_id
        WHERE dumps.workload = 'resnet-h100' AND dumps.run_id >= '2026-10-04' ORDER BY 1""",
    )
    assert chain == [
        (4, "2026-10-04", "2026-10-03", "content", 1, False),
        (5, "2026-10-05", "2026-10-04", "order", 5, False),
        (6, "2026-10-06", "2026-10-05", "content", 5, False),
        (7, "2026-10-07", "2026-10-06", "content", 5, False),
        (8, "2026-10-08", "2026-10-07", "order", 8, False),
        (9, "2026-10-09", "2026-10-08", "content", 8, False),
        (10, "2026-10-10", "2026-10-09", "order", 10, True),
    ]


def test_deleting_a_run_closes_the_chain(own):
    with writing(own) as store:
        store.delete_runs(["2026-10-05"])
    assert_current(own)
    assert rows(
        own,
        """SELECT before.run_id, matched_by FROM history INNER JOIN dumps USING (dump_id)
        INNER JOIN dumps AS before ON before.dump_id = history.previous_dump_id
        WHERE dumps.run_id = '2026-10-06' AND dumps.workload = 'llama-v5e'""",
    ) == [("2026-10-04", "order")]


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
        """SELECT dumps.run_id, platform, matched_by, is_last FROM history
        INNER JOIN dumps USING (dump_id) ORDER BY 1, 2""",
    ) == [
        ("2026-11-01", "cpu", None, True),
        ("2026-11-01", "gpu", None, False),
        ("2026-11-02", "gpu", "content", True),
    ]
