"""Labelling runs works out anew only the causes that may have changed."""

import pyarrow as pa

from memhouse.schema import store as store_module
from memhouse.schema.causes.find_causes import find_causes

from ..support.warehouse import rows, writing

TOLD = "SELECT dump_id, previous_dump_id, cause FROM history ORDER BY dump_id"


def test_causes_are_told_anew_only_for_labels_that_causes_read(own, monkeypatch):
    for key, is_read in (("commit", False), ("jax", True)):
        asked = []

        def told(rows, pairs, asked=asked):
            asked.extend(pairs)
            return find_causes(rows, pairs)

        monkeypatch.setattr(store_module, "find_causes", told)
        with writing(own) as store:
            store.label(["2026-10-05"], {key: "1"})
        assert bool(asked) == is_read


def test_labels_that_make_a_new_lineage_keep_the_causes_that_stay_true(own, monkeypatch):
    before = rows(own, TOLD)
    runs = [run for (run,) in rows(own, "SELECT run_id FROM runs")]

    def not_asked(_, pairs):
        assert not pairs
        return pa.table({"cause": pa.array([], pa.string())})

    monkeypatch.setattr(store_module, "find_causes", not_asked)
    with writing(own) as store:
        store.label(runs, {"branch": "main"})
    assert rows(own, TOLD) == before
