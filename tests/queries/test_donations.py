"""Donations: what could be donated, and what is donated for nothing, against what JAX says."""

import json
import shutil
import tarfile

import pytest
import zstandard

import memhouse
from memhouse.schema.errors import UsageError

from ..support.command import run_memhouse
from ..support.dumps import DATA
from ..support.warehouse import fill, rows

PLATFORMS = ("cpu", "tpu")
# Of these programs an output takes the arguments' memory, and nothing is copied.
IN_PLACE = {
    "cpu": {"same_shape", "carried_cache"},
    "tpu": {"same_shape", "carried_cache", "reshaped", "other_type", "training_step"},
}


def program(name):
    """The program without `_kept` and `_donated`."""
    return name.removeprefix("jit_").removesuffix("_kept").removesuffix("_donated")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs that `benchmarks/donation_programs.py` compiled; what JAX says of each."""
    folder = tmp_path_factory.mktemp("donations")
    with (DATA / "donations.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    said = {
        platform: json.loads((folder / "donations" / platform / "jax.json").read_text())
        for platform in PLATFORMS
    }
    for platform in PLATFORMS:
        (folder / "donations" / platform / "jax.json").unlink()
    db = folder / "db"
    (summary,) = fill(db, folder / "donations")
    assert summary.problems == []
    return db, said


@pytest.fixture(params=PLATFORMS)
def compiled(programs, request):
    """The programs of a platform: the warehouse, the platform, and what JAX says."""
    db, said = programs
    return db, request.param, said[request.param]


def by_program(db, platform, columns, view, where="TRUE"):
    """Rows of a view by the program's name."""
    found = {}
    for name, *row in rows(
        db,
        f"SELECT module_name, {columns} FROM {view} INNER JOIN dumps USING (module_id) "
        f"WHERE workload = '{platform}' AND memory_space = 0 AND {where} ORDER BY ALL",
    ):
        found.setdefault(name.removeprefix("jit_"), []).append(tuple(row))
    return found


def figures(db, platform, columns):
    return by_program(db, platform, columns, "module_memory")


# --- what could be donated --------------------------------------------------------------


def test_what_is_missed_is_what_jax_pairs(compiled):
    """An argument has the output that it takes when JAX donates it, and no other argument has."""
    db, platform, said = compiled
    missed = by_program(db, platform, "parameter_number, output_shape_index", "missed_donations")
    tried = 0
    for name, jax in said.items():
        if name.endswith("_kept"):
            donated = said[f"{program(name)}_donated"]
            expected = {(int(n), index) for n, index in donated["aliases"].items()}
            found = {row for row in missed.get(name, []) if row[0] in donated["donated"]}
            assert found == expected, name
            assert donated["warns"] == (len(expected) < len(donated["donated"])), name
            tried += 1
        else:
            assert not {row[0] for row in missed.get(name, [])} & set(jax["donated"]), name
    assert tried == 12


def test_donating_saves_no_more_than_the_bound(compiled):
    db, platform, said = compiled
    peaks = figures(db, platform, "peak_bytes")
    bounds = by_program(db, platform, "saving_bound_bytes", "missed_donations")
    later = by_program(
        db, platform, "saving_bound_bytes", "missed_donations", "read_later_by IS NULL"
    )
    exact = set()
    for name in map(program, said):
        ((before,),), ((after,),) = peaks[f"{name}_kept"], peaks[f"{name}_donated"]
        assert before - after <= sum(size for (size,) in bounds.get(f"{name}_kept", [])), name
        unread = sum(size for (size,) in later.get(f"{name}_kept", []))
        # What an instruction reads later is copied, but for what a TPU can reorder.
        if abs(before - after - unread) < 1 << 15:
            exact.add(name)
    assert IN_PLACE[platform] | {"scanned_cache", "inference", "fewer_elements"} <= exact


def test_what_is_read_later_is_said(compiled):
    db, platform, _ = compiled
    found = by_program(
        db, platform, "parameter_number", "missed_donations", "read_later_by IS NOT NULL"
    )
    names = {program(name) for name in found}
    assert {"read_after", "crossed", "scanned_cache"} <= names
    assert not names & IN_PLACE[platform]


def test_equal_bytes_are_paired_if_the_shapes_are_not_equal(compiled):
    db, platform, _ = compiled
    found = by_program(db, platform, "paired_by", "missed_donations")
    by_bytes = {program(name) for name, pairs in found.items() if ("bytes",) in pairs}
    assert by_bytes == {"same_bytes", "reshaped", "other_type"}


def test_a_bitcast_before_the_output_makes_no_difference(compiled):
    db, platform, _ = compiled
    if platform == "tpu":
        found = by_program(db, platform, "output_instruction", "missed_donations")
        ((made,),) = found["read_after_kept"]
        # `bitcast.4` is the result, and `copy.2` computes it.
        assert made == "copy.2"


def test_without_donation_as_much_is_missed_as_was_donated_the_night_before(history):
    """To the byte: five arguments of it have no output of their shape."""
    found = rows(
        history,
        "SELECT run_id, ANY_VALUE(alias_bytes), "
        "(SELECT SUM(saving_bound_bytes) FROM missed_donations AS missed "
        "WHERE missed.module_id = dumps.module_id) "
        "FROM dumps INNER JOIN module_memory USING (module_id) "
        "WHERE workload = 'llama-v5e' AND memory_space = 0 "
        "AND run_id BETWEEN '2026-10-07' AND '2026-10-09' GROUP BY run_id, module_id ORDER BY 1",
    )
    assert found == [
        ("2026-10-07", 138307584, None),
        ("2026-10-08", 0, 138307584),
        ("2026-10-09", 138307584, None),
    ]
    by = rows(
        history,
        "SELECT paired_by, COUNT(*) FROM missed_donations INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'llama-v5e' GROUP BY ALL ORDER BY 1",
    )
    assert by == [("bytes", 5), ("shape", 27)]


# --- what is donated for nothing --------------------------------------------------------


def test_what_is_donated_and_copied_is_said(compiled):
    """Of the programs in which a result aliases an argument, all that are not in place copy."""
    db, platform, said = compiled
    copied = by_program(db, platform, "copy_instruction", "wasted_donations")
    aliased = {program(name) for name, jax in said.items() if jax["alias_bytes"]}
    assert {program(name) for name in copied} == aliased - IN_PLACE[platform]
    assert all(name.endswith("_donated") for name in copied)


def test_copies_take_what_donation_saves(compiled):
    """What XLA copies stands in the temps, in place of what it no longer allocates."""
    db, platform, said = compiled
    copied = by_program(db, platform, "parameter_number, copied_bytes", "wasted_donations")
    for name, found in copied.items():
        grown = said[name]["temp_bytes"] - said[f"{program(name)}_kept"]["temp_bytes"]
        # CPU copies both arguments of `crossed` twice, at different times.
        assert grown <= sum(size for _, size in found)
        assert grown >= max(size for _, size in found) - 4096


def test_a_donated_argument_that_no_output_takes_is_unused(warehouse):
    found = warehouse.sql(
        "SELECT parameter_number, argument_name, why, size_bytes, copied_bytes, is_live_at_peak "
        "FROM wasted_donations INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'llama-v5e' ORDER BY 1"
    ).fetchall()
    assert found == [
        (17, "m['layers']['n1']", "unused", 8192, None, False),
        (18, "m['layers']['n2']", "unused", 8192, None, False),
        (29, "v['layers']['n1']", "unused", 8192, None, False),
        (30, "v['layers']['n2']", "unused", 8192, None, False),
    ]


def test_every_donor_of_the_header_is_unused_or_shared(history):
    found = rows(
        history,
        "SELECT COUNT(*), SUM(LENGTH(buffer_donor) - LENGTH(REPLACE(buffer_donor, '(', ''))) "
        "FROM modules WHERE buffer_donor IS NOT NULL",
    )
    ((modules, donors),) = found
    assert modules > 3
    unused = rows(history, "SELECT COUNT(*) FROM wasted_donations WHERE why = 'unused'")
    assert unused == [(donors,)]


def test_copies_of_donated_arguments_lie_in_their_memory_space(history):
    found = rows(
        history,
        "SELECT why, COUNT(*), BOOL_AND(copied_bytes = size_bytes), ANY_VALUE(copy_instruction) "
        "FROM wasted_donations INNER JOIN dumps USING (module_id) "
        "WHERE workload = 'resnet-h100' AND run_id = '2026-10-01' GROUP BY why",
    )
    ((why, count, same, instruction),) = found
    assert (why, count, same) == ("copied", 27, True)
    assert instruction.startswith("copy.")


# --- the command ------------------------------------------------------------------------


def test_the_command_shows_all_findings(programs, history):
    db, _ = programs
    found = json.loads(
        run_memhouse("donations", "cpu/jit_crossed_kept", "--db", db, "-f", "json").stdout
    )
    assert [(row["finding"], row["argument"], row["saving_bound_bytes"]) for row in found] == [
        ("not donated", "args[0]", 131072),
        ("read later", "args[1]", 131072),
    ]
    found = json.loads(
        run_memhouse("donations", "cpu/jit_crossed_donated", "--db", db, "-f", "json").stdout
    )
    assert {row["finding"] for row in found} == {"copied"}
    with memhouse.open(history, read_only=True) as warehouse:
        rows_ = warehouse.donations("llama-v5e", run="2026-10-08", limit=1)
        assert rows_.caption == "llama-v5e/jit_train_step of run 2026-10-08"
        (row,) = rows_.arrow().to_pylist()
    assert (row["saving_bound_bytes"], row["shape"], row["paired_by"]) == (
        8650752,
        "f32[3,1408,512]{2,1,0:T(8,128)}",
        "shape",
    )


def test_text_alone_has_the_same_findings(programs, tmp_path):
    """An estimate pairs the same arguments and outputs: it needs no buffer assignment."""
    db, _ = programs
    with memhouse.open(db, read_only=True) as warehouse:
        expected = warehouse.donations("cpu/jit_crossed_kept").arrow().drop_columns("origin")
    folder = tmp_path / "donations"
    with (DATA / "donations.tar.zst").open("rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(tmp_path, filter="data")
    (path,) = folder.glob("cpu/*jit_crossed_kept*after_optimizations.txt")
    found = memhouse.read(path.read_text()).donations().arrow()
    assert set(found["origin"].to_pylist()) == {"estimated"}
    assert found.drop_columns("origin").to_pylist() == expected.to_pylist()
    shutil.rmtree(folder)


def test_where_nothing_is_missed_the_command_says_so(programs, filled):
    db, _ = programs
    run = run_memhouse("donations", "tpu/jit_inference_kept", "--db", db)
    assert (run.returncode, run.stdout) == (0, "")
    assert "no argument could be donated, and none is donated for nothing" in run.stderr
    module = rows(filled, "SELECT module_id FROM modules WHERE entry_signature IS NULL LIMIT 1")
    run = run_memhouse("donations", str(module[0][0]), "--db", filled)
    assert "the dump has no HLO text" in run.stderr


def test_a_module_that_is_not_there_is_refused(programs):
    with (
        memhouse.open(programs[0], read_only=True) as warehouse,
        pytest.raises(UsageError, match="no module fits 'gone'"),
    ):
        warehouse.donations("gone")
