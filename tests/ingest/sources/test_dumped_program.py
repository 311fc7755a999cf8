"""A program as XLA dumped it: each file is read, hashed and parsed once."""

import hashlib

import pytest

from memhouse.ingest.read_program import read_program
from memhouse.ingest.sources import dump_parts
from memhouse.ingest.sources.dump_folder import find_dumps, is_wanted
from memhouse.ingest.sources.files import open_source

from ...support.dumps import copy_dump
from ...support.warehouse import fill, rows

MIXED = "cpu/jax-0.10.2/module_0018*"


def programs(folder, cleanup):
    files = open_source(folder, is_wanted, cleanup, pytest.fail)
    return find_dumps(files, lambda file, why: pytest.fail(str(why)))


@pytest.fixture
def folder(tmp_path):
    return copy_dump(MIXED, tmp_path / "night")


def test_a_damaged_binary_has_the_hash_of_its_bytes(tmp_path):
    file = tmp_path / "module_0001.jit_f.cpu_after_optimizations.hlo.pb"
    file.write_bytes(b"not a module")
    (program,) = programs(tmp_path, None)
    (outcome,) = program.fingerprint().files
    assert outcome.status == "failed"
    assert outcome.sha256 == hashlib.sha256(b"not a module").hexdigest()


def test_without_hlo_text_the_other_files_are_parsed_once(folder, monkeypatch):
    """Used values then say what HLO text would have said, and are not parsed anew for that."""
    (hlo,) = folder.glob("*after_optimizations.txt")
    hlo.write_bytes(hlo.read_bytes()[:1000] + b"\n")
    (program,) = programs(folder, None)
    parsed = []
    split = dump_parts.split_lines
    monkeypatch.setattr(
        dump_parts, "split_lines", lambda text: parsed.append(len(text)) or split(text)
    )
    outcome = read_program(program, known=set())
    assert outcome.status == "partial"
    assert len(parsed) == len(set(parsed)) == 3
    opcodes = outcome.module.tables["instructions"]["opcode"]
    assert opcodes.null_count < len(opcodes) / 2


def test_an_empty_file_of_flags_says_nothing(folder, db):
    """JAX 0.6 writes one where no option is set."""
    (options,) = folder.glob("*.debug_options")
    options.write_text("")
    (summary,) = fill(db, folder)
    assert summary.problems == []
    assert rows(db, "SELECT flags_id, status FROM dumps") == [(None, "ok")]
