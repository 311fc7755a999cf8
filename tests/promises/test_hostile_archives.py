"""Archives and compressed files that are damaged, or made to do harm: named, and bounded."""

import gzip
import io
import random
import resource
import subprocess
import tarfile
import tempfile
import time
from typing import Any

import pytest
import zstandard

from memhouse.ingest.sources import archives
from memhouse.ingest.sources import compression as unpacking
from memhouse.ingest.sources import files as sources

from ..support.command import MEMHOUSE
from ..support.dumps import DUMPS, copy_dump
from ..support.warehouse import fill, rows

SEED = "seeds/002*"
NAME = "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt"
GIB = 1 << 30


@pytest.fixture
def folder(tmp_path):
    """A folder with a good dump in it."""
    return copy_dump(SEED, tmp_path / "night")


@pytest.fixture
def unpacked_to(tmp_path, monkeypatch):
    """The folder in which archives are unpacked."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def seed():
    (path,) = DUMPS.glob(SEED)
    return path.read_bytes()


def tar_of(*members, end=True):
    """An archive of (TarInfo or name, content)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, text in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        whole = data.tell()
    return data.getvalue() if end else data.getvalue()[:whole]


def entry(name, **attributes):
    info = tarfile.TarInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info


def zeros_gz(size):
    """So many zeros, gzipped."""
    data = io.BytesIO()
    with gzip.open(data, "wb", compresslevel=9) as stream:
        for _ in range(size >> 24):
            stream.write(bytes(1 << 24))
    return data.getvalue()


def zeros_zst(size):
    """So many zeros in a few KB of zstd."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return b"".join(compressor.compress(bytes(1 << 24)) for _ in range(size >> 24)) + (
        compressor.flush()
    )


def header(name, size, kind=tarfile.REGTYPE):
    """A member's header that promises so many bytes."""
    return entry(name, size=size, type=kind).tobuf(tarfile.GNU_FORMAT)


def member_of_zeros(name, kind=tarfile.REGTYPE):
    """An archive of one member, in a few KB of zstd."""
    return zstandard.compress(header(name, 10 * GIB, kind)) + zeros_zst(10 * GIB)


def problems(db, path):
    """What is said of a path that yields the good dump at most."""
    (summary,) = fill(db, path)
    assert all("\n" not in problem for problem in summary.problems)
    return summary.problems


def test_a_member_stays_within_the_archive(tmp_path, db, unpacked_to):
    outside = tmp_path / "outside.txt"
    path = tmp_path / "night.tar"
    path.write_bytes(
        tar_of(
            (str(outside), seed()),
            ("../escaped-live-range.txt", b"x"),
            ("a/../../escaped-live-range.txt", b"x"),
            ("good/dump.txt", seed()),
        )
    )
    said = problems(db, path)
    assert len(said) == 2
    assert all("not a file within the archive, left out" in problem for problem in said)
    assert not outside.exists()
    assert list(tmp_path.rglob("*escaped*")) == []
    assert rows(db, "SELECT DISTINCT status FROM dumps") == [("ok",)]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_only_plain_files_are_taken(tmp_path, db, kind):
    path = tmp_path / "night.tar"
    bad = entry("bad-live-range.txt", type=kind, linkname="/etc/passwd")
    path.write_bytes(tar_of((bad, b""), ("dump.txt", seed())))
    assert problems(db, path) == [
        f"{path}: bad-live-range.txt: not a file within the archive, left out"
    ]
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


# What no reader knows is passed over: `bomb.txt.zst` is no dump by its first bytes.
BOMBS = {
    "bomb.txt.zst": lambda: zeros_zst(10 * GIB),
    "bomb-live-range.txt.zst": lambda: zeros_zst(10 * GIB),
    "in.tar.zst": lambda: member_of_zeros("a-live-range.txt"),
    "unwanted.tar.zst": lambda: member_of_zeros("a.png"),
    "in.tar.gz": lambda: gzip.compress(header("a-live-range.txt", GIB)) + zeros_gz(GIB // 2),
    "nested.tar.gz": lambda: gzip.compress(tar_of(("a-live-range.txt.zst", zeros_zst(10 * GIB)))),
    "header.tar.zst": lambda: member_of_zeros("x", tarfile.GNUTYPE_LONGNAME),
    "nested.tar.zst": lambda: zstandard.compress(
        tar_of(("a-live-range.txt.gz", zeros_gz(GIB)))
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little_memory_disk_and_time(folder, db, unpacked_to, name):
    bomb = folder / name
    bomb.write_bytes(BOMBS[name]())
    assert bomb.stat().st_size < 2 << 20
    watch = f"""
import resource, subprocess
resource.setrlimit(resource.RLIMIT_FSIZE, ({GIB // 2}, {GIB // 2}))
subprocess.run({[str(MEMHOUSE), "ingest", "--db", str(db), "--jobs", "1", str(folder)]})
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    started = time.monotonic()
    run = subprocess.run(
        [MEMHOUSE.parent / "python", "-c", watch],
        capture_output=True,
        text=True,
        timeout=120,
        env={"TMPDIR": str(unpacked_to), "PATH": ""},
    )
    assert time.monotonic() - started < 60
    assert "Traceback" not in run.stderr
    peak = int(run.stdout.rpartition("peak ")[2]) * 1024
    assert peak < 1.5 * GIB
    assert list(unpacked_to.iterdir()) == []
    assert rows(db, "SELECT status FROM dumps WHERE module_name LIKE '002%'") == [("ok",)]
    expected = 0 if name == "bomb.txt.zst" else 1
    assert (
        sum(
            name.partition(".")[0] in line.partition("/night/")[2]
            for line in run.stderr.splitlines()
        )
        == expected
    ), run.stderr


def test_a_sparse_member_counts_in_full(folder, db):
    info = entry(
        "a-live-range.txt",
        pax_headers={
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.name": "a-live-range.txt",
            "GNU.sparse.size": str(10 * GIB),
            "GNU.sparse.map": f"{10 * GIB},0",
        },
    )
    (folder / "sparse.tar").write_bytes(tar_of((info, b"")))
    (problem,) = problems(db, folder)
    assert "sparse.tar: the archive cannot be read, nothing was taken" in problem
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


@pytest.mark.parametrize(
    ("limit", "said"),
    [("MAX_ARCHIVE_FILES", "it holds too much"), ("MAX_ARCHIVE_BYTES", "it holds too much")],
)
def test_an_archive_is_bounded(folder, db, monkeypatch, limit, said):
    monkeypatch.setattr(archives, limit, 1000)
    (folder / "many.tar").write_bytes(
        tar_of(*((f"{i}-live-range.txt", b"x\n") for i in range(1001)))
    )
    (problem,) = problems(db, folder)
    assert said in problem
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


@pytest.mark.parametrize("limit", ["MAX_TEXT_BYTES", "ANY_RATIO_BYTES"])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_text_is_bounded(folder, db, monkeypatch, limit, ending):
    for module in (sources, unpacking):
        if hasattr(module, limit):
            monkeypatch.setattr(module, limit, 100_000)
    monkeypatch.setattr(unpacking, "MAX_RATIO", 1)
    packs: dict[str, Any] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
    pack = packs[ending]
    (folder / f"long-live-range.txt{ending}").write_bytes(pack(b"x" * 100_001))
    (problem, *missing) = problems(db, folder)
    if not ending and limit == "ANY_RATIO_BYTES":
        assert "not a dump of HloLiveRange" in problem
    else:
        assert "long-live-range.txt" in problem
        assert "the file holds more than 100000 bytes: no dump's text is so long" in problem
    assert len(missing) <= 2
    assert rows(db, "SELECT status FROM dumps WHERE module_name LIKE '002%'") == [("ok",)]


@pytest.mark.slow
def test_many_small_entries_are_passed_over(folder, db):
    path = folder / "many.tar"
    with path.open("wb") as archive:
        for i in range(100_000):
            archive.write(header(f"{i}.ll", 0))
        archive.write(bytes(1024))
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert problems(db, folder) == []
    assert time.monotonic() - started < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


def test_a_giant_window_is_refused(folder, db):
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = compressor.compress(seed()) + compressor.flush()
    (folder / "w-live-range.txt.zst").write_bytes(packed)
    (folder / "w.tar.zst").write_bytes(packed)
    said = "\n".join(problems(db, folder))
    assert said.count("Frame requires too much memory") == 2
    assert rows(db, "SELECT status FROM dumps WHERE module_name LIKE '002%'") == [("ok",)]


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.zst"])
def test_an_archive_cut_anywhere_is_named(folder, db, ending):
    whole = tar_of(*((f"{i}/dump.txt", seed()) for i in range(3)))
    cuts = random.Random(1).sample(range(len(whole) - 10_000), 30)
    # Between two members nothing is amiss but that the end is missing.
    member = 512 + -(-len(seed()) // 512) * 512
    for i, cut in enumerate([*cuts, member, 2 * member, 3 * member]):
        (folder / f"{i}.tar").write_bytes(whole[:cut])
        if ending == "tar.gz":
            (folder / f"{i}.tar").unlink()
            packed = gzip.compress(whole)
            (folder / f"{i}.tar.gz").write_bytes(packed[: cut * len(packed) // len(whole)])
        if ending == "tar.zst":
            (folder / f"{i}.tar").unlink()
            packed = zstandard.compress(whole)
            (folder / f"{i}.tar.zst").write_bytes(packed[: cut * len(packed) // len(whole)])
    said = problems(db, folder)
    assert len(said) == 33
    assert all("the archive cannot be read, nothing was taken from it" in line for line in said)
    assert rows(db, "SELECT workload, status FROM dumps") == [(".", "ok")]


@pytest.mark.parametrize("seed_number", range(4))
def test_damage_in_an_archive_is_named_or_does_none(folder, db, seed_number):
    chance = random.Random(seed_number)
    good = seed()
    for ending, pack in (
        ("tar", bytes),
        ("tar.gz", gzip.compress),
        ("tar.zst", zstandard.compress),
    ):
        whole = pack(tar_of(*((f"{i}/dump.txt", good) for i in range(3))))
        for i in range(25):
            text = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                text[chance.randrange(len(text))] = chance.randrange(256)
            (folder / f"{i}.{ending}").write_bytes(text)
    (summary,) = fill(db, folder)
    assert all("\n" not in problem for problem in summary.problems)
    assert rows(db, "SELECT status FROM dumps WHERE workload = '.'") == [("ok",)]


NAMES = {
    "not UTF-8": b"caf\xe9.txt",
    "with line ends": b"a\nb\r.txt",
    "of 1 MB": b"x" * 1_000_000 + b".txt",
    "deep": b"a/" * 20_000 + b"x.txt",
    "with a null": b"a\0b.txt",
    "of terminal commands": b"\x1b[31mred.txt",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_any_name_in_an_archive_is_read(folder, db, name):
    text = name.decode(errors="surrogateescape")
    (folder / "x.tar").write_bytes(tar_of((text, seed())))
    problems(db, folder)
    found = rows(db, "SELECT workload, module_name, status FROM dumps")
    assert (".", "002_79ae6c566c7e6550", "ok") in found
    assert all(path.isprintable() for path, *_ in found)


@pytest.mark.parametrize("modified", [-1e30, 1e30, float("nan"), float("inf"), -1, 253402300800])
def test_any_time_in_an_archive_is_read(folder, db, modified):
    info = entry("dump.txt", mtime=0, pax_headers={"mtime": str(modified)})
    (folder / "x.tar").write_bytes(tar_of((info, seed())))
    assert problems(db, folder) == []
    assert rows(db, "SELECT status FROM dumps") == [("ok",), ("ok",)]


def test_headers_upon_headers_are_refused(folder, db):
    long_name = entry("x", type=tarfile.GNUTYPE_LONGNAME, size=5).tobuf() + b"name\0" + bytes(507)
    (folder / "x.tar").write_bytes(long_name * 5000 + bytes(1024))
    (problem,) = problems(db, folder)
    assert "x.tar: the archive cannot be read" in problem
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


def test_an_archive_within_an_archive_is_no_dump(folder, db):
    (folder / "x.tar").write_bytes(tar_of(("y.tar", tar_of(("dump.txt", seed())))))
    assert problems(db, folder) == []
    assert rows(db, "SELECT workload FROM dumps") == [(".",)]


def test_what_is_wrong_leaves_no_files_behind(folder, db, unpacked_to):
    whole = tar_of(*((f"{i}/dump.txt", seed()) for i in range(3)))
    (folder / "cut.tar").write_bytes(whole[:9000])
    (folder / "good.tar").write_bytes(whole)
    assert len(problems(db, folder)) == 1
    assert list(unpacked_to.iterdir()) == []
    assert rows(db, "SELECT COUNT(*) FROM dumps") == [(4,)]


def test_an_archive_by_another_packing_is_read(folder, db):
    whole = tar_of(("dump.txt", seed()))
    (folder / "gzipped.tar").write_bytes(gzip.compress(whole))
    (folder / "plain.tar.gz").write_bytes(whole)
    assert problems(db, folder) == []
    assert rows(db, "SELECT COUNT(*) FROM dumps") == [(3,)]
