"""Programs that are read together are as each alone, whatever is wrong with one of them."""

import pyarrow as pa
import pytest

from memhouse.ingest import join
from memhouse.ingest.read_program import read_program, read_programs
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source

from ..support.dumps import DUMPS
from ..support.mutations import damaged_dump
from ..support.rounds import rounds

SMALL = 60_000


def programs_in(folder):
    files = open_source(folder, is_wanted, None, pytest.fail)
    return find_dumps(files, lambda file, why: None)


@pytest.fixture(scope="module")
def programs():
    """The sample dumps but for the largest, of all platforms and versions of JAX."""
    return [program for program in programs_in(DUMPS) if program.size_bytes < SMALL]


def plain(outcome):
    """An outcome with its rows, whatever their chunks and dictionaries are."""
    module = outcome.module
    return (
        (outcome.key, outcome.status, outcome.assumed, outcome.lacks_figures),
        [file.row(outcome.key.workload) for file in outcome.files],
        module and (module.header, module.contradictions, module.unread_passes),
        {name: decoded(table) for name, table in module.tables.items()} if module else {},
    )


def decoded(table):
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


def alone(program):
    return plain(read_program(program, frozenset()))


def together(programs):
    outcomes = read_programs([(program, None) for program in programs], frozenset())
    return [plain(outcome) for outcome in outcomes]


def test_together_as_alone(programs, monkeypatch):
    assert len({program.key.platform for program in programs}) > 2
    each = [alone(program) for program in programs]
    counts = []
    modules = join._modules

    def counted(*arguments):
        found = modules(*arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr(join, "_modules", counted)
    assert together(programs) == each
    assert together(programs[::-1]) == each[::-1]
    # No program has made the others be read alone.
    assert max(counts) > len(programs) / 2
    assert sum(counts) == 2 * len(programs)


@pytest.mark.slow
def test_what_is_wrong_with_one_is_its_own(programs, tmp_path):
    others = {program.key.name: program for program in programs[:: len(programs) // 11]}
    whole = {name: alone(program) for name, program in others.items()}
    for seed in range(rounds(25)):
        done = damaged_dump(seed, tmp_path / str(seed))
        damaged = programs_in(tmp_path / str(seed))
        # Of one program with its settings damaged the rows are the other's, and are read once.
        names = [name for name in others if name not in {each.key.name for each in damaged}]
        before, after = names[: seed % 11], names[seed % 11 :]
        found = together([*map(others.get, before), *damaged, *map(others.get, after)])
        assert found == [
            *map(whole.get, before), *map(alone, damaged), *map(whole.get, after)
        ], done  # fmt: skip
