"""A module that an older reader stored is read again when its dump is ingested again."""

import pytest

from ..support.dumps import DUMPS
from ..support.warehouse import content, fill, rows, writing

SAMPLE = DUMPS / "cpu/jax-0.9.0"


@pytest.fixture
def older(db):
    """A warehouse as an older reader left it, with another peak; and what is right."""
    fill(db, SAMPLE)
    right = content(db)
    with writing(db) as store:
        store.connection.execute("UPDATE modules SET reader_version = 0")
        store.connection.execute("UPDATE module_memory SET peak_bytes = peak_bytes + 1")
        store.connection.execute("DELETE FROM live_ranges")
    return db, right


@pytest.mark.parametrize("run", [None, "another"])
def test_the_rows_are_those_of_the_reader_of_today(older, run):
    db, right = older
    modules = len(right["modules"])
    (summary,) = fill(db, SAMPLE, run_id=run)
    (note,) = summary.notes
    assert note.startswith(f"{modules} module")
    assert (summary.new_modules, summary.problems) == (0, [])
    of_runs = ("runs", "run_parts", "dumps", "dump_series")
    found = content(db)
    for table in right.keys() - (of_runs if run else ()):
        assert found[table] == right[table], table
    # Then they are known.
    (summary,) = fill(db, SAMPLE, run_id=run)
    assert (summary.notes, summary.unchanged) == ([], summary.dumps)
    assert content(db) == found


def test_what_has_no_dump_any_more_stays(older):
    db, _ = older
    before = rows(db, "SELECT module_id, reader_version FROM modules ORDER BY ALL")
    fill(db, DUMPS / "cpu/jax-0.10.2")
    there = {module for module, _ in before}
    after = rows(db, "SELECT module_id, reader_version FROM modules ORDER BY ALL")
    assert [row for row in after if row[0] in there] == before
