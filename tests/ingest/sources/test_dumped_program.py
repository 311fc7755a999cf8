"""A program as XLA dumped it: each file is read, hashed and parsed once."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from memhouse.ingest.batches import Workers
from memhouse.ingest.read_program import read_program
from memhouse.ingest.sources import dump_folder as dumped_program
from memhouse.ingest.sources import dump_folder as dumped_texts
from memhouse.ingest.sources.dump_folder import DumpedProgram, find_dumps, is_wanted
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


@dataclass(frozen=True)
class GoneOnceRead(DumpedProgram):
    """A program whose files vanish as soon as they were read and hashed."""

    def fingerprint(self):
        found = super().fingerprint()
        for file in self.files.values():
            file.location.unlink()
        return found


def test_what_was_hashed_is_not_read_again(folder):
    (program,) = programs(folder, None)
    program = GoneOnceRead(program.key, program.files)
    outcome = read_program(program, known={1})
    assert outcome.status == "ok"
    assert outcome.module is not None


def test_a_text_that_was_read_is_not_kept(folder):
    (program,) = programs(folder, None)
    identified = program.fingerprint()
    assert identified.content
    assert program.read(identified).hlo is not None
    assert not identified.content


def test_threads_change_nothing(folder, monkeypatch):
    (program,) = programs(folder, None)
    alone = program.fingerprint()
    monkeypatch.setattr(dumped_program, "_LARGE_BYTES", 0)
    beside = program.fingerprint()
    assert (beside.module_id, beside.files, beside.settings, beside.content) == (
        alone.module_id,
        alone.files,
        alone.settings,
        alone.content,
    )


def test_a_damaged_binary_has_the_hash_of_its_bytes(tmp_path):
    file = tmp_path / "module_0001.jit_f.cpu_after_optimizations.hlo.pb"
    file.write_bytes(b"not a module")
    (program,) = programs(tmp_path, None)
    (outcome,) = program.fingerprint().files
    assert outcome.status == "failed"
    assert outcome.sha256 == hashlib.sha256(b"not a module").hexdigest()


def test_what_was_hashed_here_is_not_read_again_in_another_process(folder, tmp_path):
    shutil.copytree(folder, folder / "again")
    both = [GoneOnceRead(p.key, p.files) for p in programs(folder, None)]
    with Workers(2) as workers:
        outcomes = list(workers.read(both, known={1}))
    assert [(o.status, o.module is not None) for o in outcomes] == [("ok", True), ("ok", False)]
    assert not any(path.is_file() for path in Path(folder).rglob("*after_optimizations*"))


def test_without_hlo_text_the_other_files_are_parsed_once(folder, monkeypatch):
    """Used values then say what HLO text would have said, and are not parsed anew for that."""
    (hlo,) = folder.glob("*after_optimizations.txt")
    hlo.write_bytes(hlo.read_bytes()[:1000] + b"\n")
    (program,) = programs(folder, None)
    parsed = []
    split = dumped_texts.split_lines
    monkeypatch.setattr(
        dumped_texts, "split_lines", lambda text: parsed.append(len(text)) or split(text)
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
