"""The program of a stored module is the one that ingest had."""

from contextlib import ExitStack
from dataclasses import fields

import numpy as np
import pytest

from memhouse.ingest.join import Told, work_out
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from memhouse.queries.advice.asked_program import stored_program
from memhouse.xla.columns.program import Codes
from tests.support.dumps import DATA, DUMPS
from tests.support.warehouse import fill, reading

# Rows of a warehouse have no lines.
LEFT_OUT = ("lines",)


def plain(value):
    """A column as texts or numbers, whatever its codes are."""
    if isinstance(value, Codes):
        return [value.at(row) for row in range(len(value.codes))]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_pylist() if hasattr(value, "to_pylist") else value


def programs(path):
    """The program of each dump, as ingest has it."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, pytest.fail)
        for dump in find_dumps(files, lambda file, why: pytest.fail(str(why))):
            parts = dump.read(dump.fingerprint())
            changelist = int(dump.key.compiler) if dump.key.compiler else None
            found = work_out(Told(parts, dump.key.platform, changelist))
            yield dump.key, found.program


PATHS = [*DUMPS.glob("*/*"), *DATA.glob("binaries/*"), DATA / "compact"]


@pytest.mark.parametrize("path", sorted(p for p in PATHS if p.is_dir()), ids=lambda p: p.name)
def test_it_is_the_one_that_ingest_has(path, db):
    fill(db, path)
    with reading(db) as store:
        for key, expected in programs(path):
            ((module_id,),) = store.connection.execute(
                "SELECT module_id FROM dumps WHERE module_name = $1"
                " AND module_number IS NOT DISTINCT FROM $2",
                [key.module_name, key.number],
            ).fetchall()
            found = stored_program(store, module_id)
            if expected is None:
                assert found is None
                continue
            for field in fields(expected):
                if field.name not in LEFT_OUT:
                    one, other = getattr(found, field.name), getattr(expected, field.name)
                    assert plain(one) == plain(other), (key, field.name)
