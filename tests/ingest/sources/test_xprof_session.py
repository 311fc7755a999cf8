"""Sessions of XProf: every module that ran, once, under the session's name."""

import shutil
from datetime import datetime
from pathlib import Path

import pytest

import memhouse
from memhouse.ingest.pipeline import run_name

from ...support.mutations import change_byte, cut, delete_some, random_bytes, spliced, zeros
from ...support.rounds import rounds
from ...support.warehouse import fill, rows
from ...support.xplanes import SESSION, XPLANE, device, metadata, modules_of

NAME = SESSION.name
MODULES = [
    ("jit_broadcast_in_dim", 65540),
    ("jit_broadcast_in_dim", 2097156),
    ("jit_convert_element_type", 8),
    ("jit_f", 6291540),
]
DUMPS = "SELECT workload, module_name, occurrence, platform FROM dumps ORDER BY ALL"
NAMED = [("jit_broadcast_in_dim", 1), ("jit_broadcast_in_dim", 2)]
NAMED += [("jit_convert_element_type", 1), ("jit_f", 1)]


@pytest.fixture(scope="module")
def real():
    """The HloProtos of the real session, by their names there."""
    return dict(modules_of())


@pytest.fixture
def session(tmp_path):
    """Makes a session's folder of files: its path."""

    def make(files, name=NAME, outer="logs"):
        folder = tmp_path / outer / "plugins/profile" / name
        folder.mkdir(parents=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        return folder

    return make


def take(db, *paths, **options):
    (summary,) = fill(db, *paths, **options)
    return summary


def test_a_real_session(db):
    summary = take(db, SESSION)
    assert (summary.run_id, summary.dumps, summary.new_modules) == (NAME, 4, 4)
    assert (summary.problems, summary.notes) == ([], [])
    peaks = "SELECT module_name, peak_bytes FROM peaks ORDER BY ALL"
    assert rows(db, peaks) == MODULES
    assert rows(db, DUMPS) == [(".", *named, "cpu") for named in NAMED]
    assert rows(db, "SELECT run_at FROM runs") == [(datetime(2026, 11, 21, 12, 55, 28),)]
    assert rows(db, "SELECT path, kind, status FROM dump_files ORDER BY path") == [
        ("vm.xplane.pb/jit_broadcast_in_dim(2)", "xplane", "ok"),
        ("vm.xplane.pb/jit_broadcast_in_dim(4)", "xplane", "ok"),
        ("vm.xplane.pb/jit_convert_element_type(0)", "xplane", "ok"),
        ("vm.xplane.pb/jit_f(6)", "xplane", "ok"),
    ]
    # What a session does not say.
    unknown = "SELECT DISTINCT module_number, flags_id, device_kind, compiler FROM dumps"
    assert rows(db, unknown) == [(None, None, None, None)]
    with memhouse.open(db, read_only=True) as warehouse:
        assert len(warehouse.verify().rows) == 0
    again = take(db, SESSION)
    assert (again.run_id, again.unchanged, again.new_modules) == (NAME, 4, 0)


def test_the_run_is_named_after_the_session(db):
    for path in (SESSION, XPLANE, *SESSION.parents[:3]):
        assert run_name(path) == NAME
    assert take(db, SESSION.parents[2]).run_id == NAME
    assert rows(db, DUMPS) == [(".", *named, "cpu") for named in NAMED]


def test_a_folder_that_holds_more_keeps_its_name(tmp_path, session):
    session({"vm.xplane.pb": b""})
    logs = tmp_path / "logs"
    assert run_name(logs) == NAME
    (logs / "events.out.tfevents.1").touch()
    assert run_name(logs) == NAME
    (logs / "step").mkdir()
    assert run_name(logs) == "logs"
    assert run_name(logs / "plugins") == NAME
    session({"vm.xplane.pb": b""}, "2026_11_22_00_00_00")
    assert run_name(logs / "plugins/profile") == "logs"
    lone = shutil.copy(XPLANE, tmp_path / "alone.xplane.pb")
    assert run_name(Path(lone)) == "alone"


def test_several_sessions_are_workloads(db, session):
    one = session({"vm.xplane.pb": XPLANE.read_bytes()})
    other = session({"vm.xplane.pb": XPLANE.read_bytes()}, "2026_11_22_00_00_00")
    summary = take(db, other.parent)
    assert (summary.run_id, summary.dumps, summary.new_modules) == ("logs", 8, 4)
    assert rows(db, "SELECT DISTINCT workload FROM dumps ORDER BY 1") == [
        (NAME,),
        ("2026_11_22_00_00_00",),
    ]
    # The newest session; a folder of several claims no date.
    assert rows(db, "SELECT compiled_at, claimed_at FROM runs") == [(datetime(2026, 11, 22), None)]
    with memhouse.open(db) as warehouse:
        summary = warehouse.ingest(one, other, run="both")
    assert (summary.dumps, summary.problems) == (8, [])


def test_a_module_that_several_hosts_ran_counts_once(db, session, real):
    # Program ids count per process, and the bytes of equal modules may differ.
    hosts = {
        "host0.xplane.pb": metadata([("jit_f(6)", real["jit_f(6)"])]),
        "host1.xplane.pb": metadata(
            [("jit_f(3)", real["jit_f(6)"]), ("jit_only_here(1)", real["jit_broadcast_in_dim(2)"])]
        ),
    }
    take(db, session(hosts))
    assert rows(db, "SELECT path, module_name FROM dump_files JOIN dumps USING (dump_id)") == [
        ("host0.xplane.pb/jit_f(6)", "jit_f"),
        ("host1.xplane.pb/jit_only_here(1)", "jit_broadcast_in_dim"),
    ]


def test_a_name_may_be_that_of_several_programs(db, session, real):
    """In one process, and of other programs on other hosts."""
    one, two = real["jit_broadcast_in_dim(2)"], real["jit_broadcast_in_dim(4)"]
    equal = [("jit_f(9)", real["jit_f(6)"]), ("jit_f(10)", real["jit_f(6)"])]
    hosts = {
        "host0.xplane.pb": metadata([*equal, ("jit_broadcast_in_dim(2)", one)]),
        "host1.xplane.pb": metadata([*equal, ("jit_broadcast_in_dim(2)", two)]),
    }
    summary = take(db, session(hosts))
    assert (summary.dumps, summary.new_modules) == (4, 3)


def test_xprofs_own_copies_change_nothing(db, session, real):
    folder = session({"vm.xplane.pb": XPLANE.read_bytes()})
    take(db, folder)
    for name, content in real.items():
        (folder / f"{name}.hlo_proto.pb").write_bytes(content)
    again = take(db, folder)
    assert (again.run_id, again.dumps, again.unchanged) == (NAME, 4, 4)


def test_one_hlo_proto_alone(db, tmp_path, real):
    file = tmp_path / "jit_f(6).hlo_proto.pb"
    file.write_bytes(real["jit_f(6)"])
    summary = take(db, file)
    assert (summary.run_id, summary.problems) == ("jit_f(6)", [])
    # Nothing says that it ran on a CPU.
    assert rows(db, DUMPS) == [(".", "jit_f", 1, None)]


def test_devices_name_the_platform_only_where_it_is_certain(db, session, real):
    on_tpu = real["jit_f(6)"].replace(b"outer_dimension_partitions", b"scoped_memory_configs12345")
    assert on_tpu != real["jit_f(6)"]
    profile = device("/device:TPU:0", "TPU v5 Lite") + metadata(
        [("jit_f(1)", on_tpu), ("jit_g(2)", real["jit_broadcast_in_dim(2)"])]
    )
    take(db, session({"vm.xplane.pb": profile}))
    assert rows(db, "SELECT module_name, platform, device_kind FROM dumps ORDER BY 1") == [
        ("jit_broadcast_in_dim", None, None),
        ("jit_f", "tpu", "TPU v5 Lite"),
    ]


def test_what_a_session_lacks_is_told_and_stops_nothing(db, tmp_path, session, real):
    size = XPLANE.stat().st_size - 1000
    # Of each: what the problem begins with and says, dumps, those that failed.
    for name, files, problem, facts, dumps, failed in (
        ("none", {"vm.xplane.pb": metadata([])}, "", [], 0, 0),
        ("empty", {"NO_MODULE.hlo_proto.pb": b""}, "", [], 0, 0),
        ("cut", {"vm.xplane.pb": XPLANE.read_bytes()[:-1000]}, "", [f" byte {size}"], 4, 0),
        (
            "damaged",
            {
                "vm.xplane.pb": metadata(
                    [
                        ("jit_f(6)", real["jit_f(6)"][:1000]),
                        ("jit_g(1)", real["jit_broadcast_in_dim(2)"]),
                    ]
                )
            },
            "/jit_f(6)",
            ["damaged"],
            2,
            1,
        ),
        # A name is one line.
        (
            "named",
            {"vm.xplane.pb": metadata([("a\nb\\/c(1)", real["jit_f(6)"][:-5])])},
            "/a\\nb\\/c(1)",
            [],
            1,
            1,
        ),
    ):
        folder = session(files, name)
        summary = take(db, folder)
        (told,) = summary.problems
        assert told.startswith(f"{folder / next(iter(files))}{problem}: "), name
        assert all(fact in told for fact in facts), told
        assert (summary.dumps, summary.failed) == (dumps, failed), name


def test_a_shape_that_is_damaged_within_a_fusion_is_told(db, session, real):
    # The layout `{1,0}` of a fused instruction gets a third dimension.
    content, layout = real["jit_f(6)"], b"\x0a\x02\x01\x00"
    at = content.index(b"region_1")
    at = content.index(layout, content.index(b"fused_computation", at))
    damaged = content[: at + 2] + b"\x01\x01" + content[at + 4 :]
    summary = take(db, session({"vm.xplane.pb": metadata([("jit_f(6)", damaged)])}))
    assert summary.dumps == 1
    (told,) = summary.problems + summary.notes
    assert "jit_f(6)" in told
    assert "damaged" in told or "dimensions" in told


def test_a_module_without_an_assignment_is_estimated(db, session, real):
    content = real["jit_f(6)"]
    length = content[1] & 0x7F | content[2] << 7 & 0x3F80 | content[3] << 14
    folder = session({"vm.xplane.pb": metadata([("jit_f(6)", content[: 4 + length])])})
    summary = take(db, folder)
    assert summary.problems == []
    (note,) = summary.notes
    assert note.startswith(f"{folder}/vm.xplane.pb/jit_f(6): ")
    assert rows(db, "SELECT origin FROM modules") == [("estimated",)]


MUTATIONS = (cut, change_byte, change_byte, change_byte, random_bytes, delete_some, zeros, spliced)
TRIES = rounds(40)


@pytest.mark.slow
def test_any_damaged_profile_has_an_outcome(tmp_path):
    run_damaged(tmp_path, range(TRIES))


def run_damaged(folder, seeds):
    """Ingest damaged profiles, each as a run; a seed makes the same profile again."""
    import random

    with memhouse.open(folder / "damaged.duckdb") as warehouse:
        for seed in seeds:
            chance = random.Random(seed)
            content = XPLANE.read_bytes()
            for _ in range(chance.choice((1, 1, 2, 5))):
                content = chance.choice(MUTATIONS)(chance, content)
            file = folder / f"seed{seed}.xplane.pb"
            file.write_bytes(content)
            summary = warehouse.ingest(file)
            file.unlink()
            assert all("\n" not in problem for problem in summary.problems), seed
            assert summary.dumps or summary.problems, seed
        # What is stored agrees with itself, and what could not be read is named.
        checks = warehouse.verify().rows.arrow()["check"].to_pylist()
        assert set(checks) <= {"dumps_are_complete"}
