"""The program of a stored module is the one that ingest had."""

from contextlib import ExitStack

import pytest

from memhouse.advice.stored_program import stored_program
from memhouse.ingest.derive import derive
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source
from tests.support.dumps import DATA, DUMPS
from tests.support.warehouse import fill, reading

STORED = (
    *("names", "opcode", "shape", "operands", "calls", "aliases", "control_predecessors"),
    *("entry", "computation_names", "first", "stop", "root", "computation"),
    *("parameter_number", "tuple_index", "attributes", "operand_aliasing"),
    *("fusion_kind", "custom_call_target"),
)


def programs(path):
    """The program of each dump, as ingest has it."""
    with ExitStack() as cleanup:
        files = open_source(path, is_wanted, cleanup, pytest.fail)
        for dump in find_dumps(files, lambda file, why: pytest.fail(str(why))):
            parts = dump.read(dump.fingerprint())
            yield dump.key, derive(parts, dump.key.platform).program


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
            for name in STORED:
                assert getattr(found, name) == getattr(expected, name), (key, name)
