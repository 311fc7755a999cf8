"""Archives and compressed files that are damaged, or made to do harm: named, and bounded."""

import gzip
import io
import random
import subprocess
import tarfile
import tempfile
from typing import Any

import pytest
import zstandard

from memhouse.ingest.sources import files as archives
from memhouse.ingest.sources import files as sources
from memhouse.ingest.sources import files as unpacking

from ..support.command import MEMHOUSE
from ..support.dumps import DUMPS, copy_dump
from ..support.rounds import rounds
from ..support.warehouse import fill, rows

SEED = "seeds/002*"

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
    """So many zeros, gzipped in parts."""
    return gzip.compress(bytes(1 << 24)) * (size >> 24)


def zeros_zst(size):
    """So many zeros in parts that do not say how long they are."""
    compressor = zstandard.ZstdCompressor().compressobj()
    part = compressor.compress(bytes(1 << 24)) + compressor.flush()
    return part * (size >> 24)


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
    assert all("escaped-live-range.txt" in problem for problem in said)
    assert not outside.exists()
    assert list(tmp_path.rglob("*escaped*")) == []
    assert rows(db, "SELECT DISTINCT status FROM dumps") == [("ok",)]


def test_only_plain_files_are_taken(tmp_path, db):
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    bad = [
        (entry(f"bad-{number}-live-range.txt", type=kind, linkname="/etc/passwd"), b"")
        for number, kind in enumerate(kinds)
    ]
    path = tmp_path / "night.tar"
    path.write_bytes(tar_of(*bad, ("dump.txt", seed())))
    said = problems(db, path)
    assert len(said) == len(kinds)
    assert all(f"bad-{number}-" in line for number, line in enumerate(said))
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
def test_bombs_take_little_memory_and_disk(tmp_path, db, unpacked_to):
    for number, (name, make) in enumerate(BOMBS.items()):
        bomb = copy_dump(SEED, tmp_path / "night" / str(number)) / name
        bomb.write_bytes(make())
        assert bomb.stat().st_size < 2 << 20
    watch = f"""
import resource, subprocess
resource.setrlimit(resource.RLIMIT_FSIZE, ({GIB // 2}, {GIB // 2}))
subprocess.run({[str(MEMHOUSE), "ingest", "--db", str(db), "--jobs", "1", str(tmp_path / "night")]})
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    run = subprocess.run(
        [MEMHOUSE.parent / "python", "-c", watch],
        capture_output=True,
        text=True,
        env={"TMPDIR": str(unpacked_to), "PATH": ""},
    )
    assert "Traceback" not in run.stderr
    peak = int(run.stdout.rpartition("peak ")[2]) * 1024
    assert peak < 1.5 * GIB
    assert list(unpacked_to.iterdir()) == []
    good = "SELECT COUNT(*) FROM dumps WHERE module_name LIKE '002%' AND status = 'ok'"
    assert rows(db, good) == [(len(BOMBS),)]
    for number, name in enumerate(BOMBS):
        told = [line for line in run.stderr.splitlines() if f"/night/{number}/" in line]
        assert len(told) == (name != "bomb.txt.zst"), (name, run.stderr)


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
    assert "sparse.tar: " in problem
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


def test_an_archive_is_bounded(folder, db, monkeypatch):
    (folder / "many.tar").write_bytes(
        tar_of(*((f"{i}-live-range.txt", b"x\n") for i in range(1001)))
    )
    for limit in ("MAX_ARCHIVE_FILES", "MAX_ARCHIVE_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(archives, limit, 1000)
            (problem,) = problems(db, folder)
        assert "many.tar" in problem
    assert rows(db, "SELECT DISTINCT status FROM dumps") == [("ok",)]


def test_a_text_is_bounded(folder, db, monkeypatch):
    packs: dict[str, Any] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
    for ending, pack in packs.items():
        (folder / f"long{len(ending)}-live-range.txt{ending}").write_bytes(pack(b"x" * 100_001))
    monkeypatch.setattr(unpacking, "MAX_RATIO", 1)
    for limit, told in (("MAX_TEXT_BYTES", 3), ("ANY_RATIO_BYTES", 2)):
        with monkeypatch.context() as patched:
            for module in (sources, unpacking):
                if hasattr(module, limit):
                    patched.setattr(module, limit, 100_000)
            said = problems(db, folder)
        assert len([line for line in said if "100000 bytes" in line]) == told
    query = "SELECT DISTINCT status FROM dumps WHERE module_name LIKE '002%'"
    assert rows(db, query) == [("ok",)]


def test_a_giant_window_is_refused(folder, db):
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = compressor.compress(seed()) + compressor.flush()
    (folder / "w-live-range.txt.zst").write_bytes(packed)
    (folder / "w.tar.zst").write_bytes(packed)
    said = problems(db, folder)
    assert [name for name in ("w-live-range.txt.zst", "w.tar.zst") if name in "\n".join(said)] == [
        "w-live-range.txt.zst",
        "w.tar.zst",
    ]
    assert rows(db, "SELECT status FROM dumps WHERE module_name LIKE '002%'") == [("ok",)]


PACKS: dict[str, Any] = {"tar": bytes, "tar.gz": gzip.compress, "tar.zst": zstandard.compress}


def test_an_archive_cut_anywhere_is_named(folder, db):
    whole = tar_of(*((f"{i}/dump.txt", seed()) for i in range(3)))
    cuts = random.Random(1).sample(range(len(whole) - 10_000), 15)
    # Between two members nothing is amiss but that the end is missing.
    member = 512 + -(-len(seed()) // 512) * 512
    for ending, pack in PACKS.items():
        packed = pack(whole)
        for i, cut in enumerate([*cuts, member, 2 * member, 3 * member]):
            (folder / f"{i}.{ending}").write_bytes(packed[: cut * len(packed) // len(whole)])
    said = problems(db, folder)
    named = {line.split(":")[0].rpartition("/")[2] for line in said}
    assert named == {f"{i}.{ending}" for i in range(18) for ending in PACKS}
    assert len(said) == len(named)
    assert rows(db, "SELECT workload, status FROM dumps") == [(".", "ok")]


@pytest.mark.slow
def test_damage_in_an_archive_is_named_or_does_none(folder, db):
    chance = random.Random(1)
    for ending, pack in PACKS.items():
        whole = pack(tar_of(*((f"{i}/dump.txt", seed()) for i in range(3))))
        for i in range(rounds(25)):
            text = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                text[chance.randrange(len(text))] = chance.randrange(256)
            (folder / f"{i}.{ending}").write_bytes(text)
    problems(db, folder)
    assert rows(db, "SELECT status FROM dumps WHERE workload = '.'") == [("ok",)]


NAMES = {
    "not UTF-8": b"caf\xe9.txt",
    "with line ends": b"a\nb\r.txt",
    "of 1 MB": b"x" * 1_000_000 + b".txt",
    "deep": b"a/" * 20_000 + b"x.txt",
    "with a null": b"a\0b.txt",
    "of terminal commands": b"\x1b[31mred.txt",
}
TIMES = (-1e30, 1e30, float("nan"), float("inf"), -1, 253402300800)


def test_any_name_and_time_in_an_archive_is_read(folder, db):
    for number, name in enumerate(NAMES.values()):
        text = name.decode(errors="surrogateescape")
        (folder / f"name{number}.tar").write_bytes(tar_of((text, seed())))
    for number, modified in enumerate(TIMES):
        info = entry("dump.txt", mtime=0, pax_headers={"mtime": str(modified)})
        (folder / f"time{number}.tar").write_bytes(tar_of((info, seed())))
    assert [line for line in problems(db, folder) if "/time" in line] == []
    found = rows(db, "SELECT workload, module_name, status FROM dumps")
    assert (".", "002_79ae6c566c7e6550", "ok") in found
    assert {f"time{number}" for number in range(len(TIMES))} <= {row[0] for row in found}
    assert all(path.isprintable() for path, *_ in found)


def test_headers_upon_headers_are_refused(folder, db):
    long_name = entry("x", type=tarfile.GNUTYPE_LONGNAME, size=5).tobuf() + b"name\0" + bytes(507)
    (folder / "x.tar").write_bytes(long_name * 5000 + bytes(1024))
    (problem,) = problems(db, folder)
    assert "x.tar: " in problem
    assert rows(db, "SELECT status FROM dumps") == [("ok",)]


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
