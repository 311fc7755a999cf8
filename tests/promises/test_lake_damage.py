"""Damaged and missing files of a lake: named by `lake check`, dropped by `lake repair`."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

import memhouse
import memhouse.lake
from memhouse.schema.errors import MemhouseError, WarehouseError
from memhouse.schema.lake import data_files
from memhouse.schema.lake import upkeep as repair
from memhouse.schema.lake.data_files import HISTORY, relations
from memhouse.schema.lake.snapshot import Lake

from ..support.command import run_memhouse
from ..support.dumps import DUMPS
from ..support.lakes import lake_in, table_rows
from ..support.rounds import rounds

FIRST_NIGHTS = 3
FLIPS_AT_ONCE = 10
BOMB_ROWS = 300_000


@pytest.fixture(scope="module")
def sample(tmp_path_factory, nights):
    """A lake of three nights and of programs of which some lack parts. Only read it."""
    folder = tmp_path_factory.mktemp("lakes") / "lake"
    memhouse.lake.init(folder)
    with memhouse.open(folder) as warehouse:
        for night in sorted(nights.iterdir())[:FIRST_NIGHTS]:
            warehouse.ingest(night)
        warehouse.ingest(DUMPS / "cpu", run="cpu")
        warehouse.label("cpu", labels={"suite": "other"})
    return folder


@pytest.fixture
def lake(sample, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(sample, tmp_path / "lake"))


def files_of(lake):
    return [file for files in Lake(str(lake)).snapshot.files.values() for file in files]


def rows_of(rows):
    return rows.arrow().to_pylist()


def flip(file, bit):
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def damaged(lake):
    return {found.file for found in memhouse.lake.check(lake, read_data=True).damaged}


def require_whole(lake):
    """The lake has no damage, contradicts itself nowhere, and answers."""
    assert memhouse.lake.check(lake, read_data=True).damaged == []
    with memhouse.open(lake) as warehouse:
        verified = warehouse.verify()
        assert not [row for row in rows_of(verified.rows) if row["check"] != "dumps_are_complete"]
        if len(warehouse.runs()):
            warehouse.peaks()
            warehouse.trends()
            warehouse.check(max_growth=["2%"])
        assert warehouse.log()


@pytest.mark.scheduled
def test_each_flipped_bit_is_named_and_the_rest_answers_after_the_repair(sample, tmp_path):
    chance = random.Random(7)
    for number in range(rounds(1)):
        lake = Path(shutil.copytree(sample, tmp_path / str(number)))
        chosen = chance.sample(files_of(lake), FLIPS_AT_ONCE)
        for file in chosen:
            flip(lake / file.path, chance.randrange(file.size_bytes * 8))
        assert damaged(lake) == {file.path for file in chosen}
        memhouse.lake.repair(lake)
        require_whole(lake)
        shutil.rmtree(lake)


# One of each kind: of runs, modules, and of what few modules have.
_IN_CI = {"runs", "modules", "residuals"}


@pytest.mark.scheduled
@pytest.mark.parametrize(
    "relation",
    [
        pytest.param(name, marks=[pytest.mark.scheduled] * (name not in _IN_CI))
        for name in relations()
    ],
)
def test_what_lacks_the_rows_of_a_lost_file_goes_with_them_and_nothing_else(lake, relation):
    files = Lake(str(lake)).snapshot.of(relation)
    if not files:
        pytest.skip("no such rows here")
    with lake_in(lake, create=False) as store:
        before = table_rows(store)
    (lake / files[0].path).unlink()
    found = memhouse.lake.check(lake)
    assert [damage.file for damage in found.damaged] == [files[0].path]
    done = memhouse.lake.repair(lake, found)
    require_whole(lake)
    with lake_in(lake, create=False) as store:
        after = table_rows(store)
    if relation in HISTORY:
        assert {name: rows for name, rows in after.items() if name != "journal"} == {
            name: rows for name, rows in before.items() if name != "journal"
        }
    # A file that holds the rows of some modules takes no others with it.
    touched = {*done.runs, *done.incomplete_runs}
    assert touched <= {*found.damaged[0].runs}
    of_others = [row for row in before["dumps"] if not touched & {*row}]
    assert {*of_others} <= {*after["dumps"]}


def test_a_file_of_rows_that_few_modules_have_takes_only_these(lake):
    """Compacted, a file may hold rows of any module: those without are known by other rows."""
    with memhouse.open(lake) as warehouse:
        warehouse.compact()
    (file,) = Lake(str(lake)).snapshot.of("residuals")
    with memhouse.open(lake) as warehouse:
        with_residuals = len(warehouse.sql("SELECT DISTINCT module_id FROM residuals"))
    (lake / file.path).unlink()
    assert 0 < with_residuals == memhouse.lake.repair(lake).modules
    require_whole(lake)


def test_other_rows_tell_which_modules_have_rows_in_a_relation(warehouse):
    for relation, (other, condition) in repair._HAVE_ROWS.items():
        missed = f'SELECT module_id FROM "{relation}" EXCEPT SELECT module_id FROM "{other}" WHERE '
        assert warehouse.sql(missed + condition).fetchall() == [], relation


@pytest.mark.scheduled
def test_commands_that_need_no_lost_row_go_on(lake):
    with memhouse.open(lake) as warehouse:
        (last,) = rows_of(warehouse.sql("SELECT MAX(module_id) AS id FROM modules"))
        query = 'SELECT COUNT(*) AS n FROM "values" WHERE module_id = $1'
        one = rows_of(warehouse.sql(query, [last["id"]]))
    own = [f for f in Lake(str(lake)).snapshot.of("values") if f.most["module_id"] < last["id"]]
    for file in own:
        (lake / file.path).unlink()
    for command in (["runs"], ["peaks"], ["trends"], ["check", "--max-growth", "2%"], ["log"]):
        done = run_memhouse(*command, "--db", lake)
        assert "lake repair" not in done.stderr, done.stderr
    with memhouse.open(lake) as warehouse:
        assert rows_of(warehouse.sql(query, [last["id"]])) == one
        with pytest.raises(MemhouseError, match=r"relation=values/.*repair"):
            warehouse.sql('SELECT COUNT(*) FROM "values"')
    # A new night has no cause that can be told, and is stored; after the repair all is whole.
    assert run_memhouse("ingest", "--db", lake, DUMPS / "seeds").returncode == 0
    assert run_memhouse("peaks", "--db", lake).returncode == 0
    memhouse.lake.repair(lake)
    require_whole(lake)


def test_a_damaged_file_gets_no_new_name(lake):
    """Neither compaction nor a change gives damaged rows a checksum of their own."""
    file = Lake(str(lake)).snapshot.of("values")[0]
    flip(lake / file.path, file.size_bytes * 4)
    for command in (
        ["lake", "compact"],
        ["prune", "2026-10-01", "2026-10-02", "2026-10-03", "cpu"],
    ):
        done = run_memhouse(*command, "--db", lake)
        assert done.returncode == 1, command
        assert file.path in done.stderr
        assert f"`memhouse lake repair {lake}`" in done.stderr
    assert damaged(lake) == {file.path}


def test_the_commands(lake):
    assert "--read-data" in run_memhouse("lake", "check", lake).stderr
    whole = run_memhouse("lake", "check", lake, "--read-data")
    assert (whole.returncode, whole.stdout) == (0, "")
    assert "--read-data" not in whole.stderr
    assert run_memhouse("lake", "repair", lake).returncode == 0
    file = Lake(str(lake)).snapshot.of("run_labels")[0]
    flip(lake / file.path, 99)
    assert run_memhouse("lake", "check", lake).returncode == 0
    told = run_memhouse("lake", "check", lake, "--read-data")
    assert told.returncode == 1
    assert told.stdout.startswith(f"{file.path}\n")
    asked = run_memhouse("lake", "repair", lake)
    assert asked.returncode == 2
    assert damaged(lake) == {file.path}
    done = run_memhouse("lake", "repair", lake, "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 file, 0 runs" in done.stderr
    with memhouse.open(lake) as warehouse:
        assert "repair" in {row["action"] for row in rows_of(warehouse.log())}


# --- files of other programs, and hostile ones ----------------------------------------------


def in_log(lake, relation, change):
    """Change the entry of a relation's first file in the log; its path."""
    for checkpoint in (lake / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    for commit in sorted((lake / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for line in lines:
            add = line.get("add")
            if add and add["partitionValues"]["relation"] == relation:
                path = add["path"]
                change(add)
                commit.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
                return path
    raise AssertionError(relation)


def test_a_file_without_a_checksum_is_not_checked_and_still_read(lake):
    """As Spark and older versions of memhouse name their files."""
    name = "relation=values/part-00000-6d3b2a8e-c000.zstd.parquet"
    path = in_log(lake, "values", lambda add: add.update(path=name))
    (lake / path).rename(lake / name)
    done = run_memhouse("lake", "check", lake, "--read-data")
    assert done.returncode == 0
    assert "1 not checked" in done.stderr
    require_whole(lake)
    os.truncate(lake / name, 1000)
    assert damaged(lake) == {name}


OUTSIDE = [
    "relation=runs/../../x.parquet",
    "relation=runs/%2e%2e/%2e%2e/x.parquet",
    "relation=runs\\..\\..\\x.parquet",
    "relation=runs/*.parquet",
    "{outside}/x.parquet",
    "file://{outside}/x.parquet",
    "s3://bucket/x.parquet",
]


def test_no_path_leads_out_of_the_lake(lake, tmp_path):
    shutil.copy(lake / in_log(lake, "runs", lambda add: None), tmp_path / "x.parquet")
    for relation in ("runs", "values"):
        for outside in OUTSIDE:
            changed = Path(shutil.copytree(lake, tmp_path / "changed"))
            path = outside.format(outside=tmp_path)
            path = path.replace("relation=runs", f"relation={relation}")
            in_log(changed, relation, lambda add, path=path: add.update(path=path))
            for command in (["runs", "--db", changed], ["lake", "check", changed]):
                done = run_memhouse(*command)
                assert done.returncode == 1, (command, path)
                assert done.stderr.startswith("error: ")
                assert "outside" in done.stderr
                assert done.stderr.count("\n") == 1
            shutil.rmtree(changed)


def test_no_symbolic_link_is_followed(lake, tmp_path):
    file = lake / Lake(str(lake)).snapshot.of("values")[0].path
    for own in (file, file.parent):
        moved = own.rename(tmp_path / "elsewhere")
        own.symlink_to(moved)
        before = sorted(tmp_path.rglob("*"))
        for command in (["runs"], ["ingest", DUMPS / "seeds"], ["lake", "vacuum"]):
            done = run_memhouse(*command, "--db", lake)
            assert done.returncode == 1
            assert str(own.relative_to(lake)) in done.stderr
        assert sorted(tmp_path.rglob("*")) == before
        own.unlink()
        moved.rename(own)


def test_a_vacuum_deletes_nothing_by_way_of_a_link(lake, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    os.utime(other / "file", (0, 0))
    (lake / "relation=old").symlink_to(other)
    done = run_memhouse("lake", "vacuum", "--db", lake)
    assert done.returncode == 1
    assert "relation=old" in done.stderr
    assert (other / "file").exists()


@pytest.mark.scheduled
def test_no_file_has_more_rows_than_the_log_says(lake):
    """Few bytes may hold any number of equal rows."""
    bombs = set()
    for relation in ("modules", "values"):
        file = Lake(str(lake)).snapshot.of(relation)[0]
        rows = data_files.read_files(str(lake), [file], relation).slice(0, 1)
        bomb = rows.take([0] * BOMB_ROWS)
        parquet.write_table(bomb, lake / "bomb", compression="zstd", row_group_size=BOMB_ROWS)
        name = f"relation={relation}/bomb.parquet"
        size = (lake / "bomb").rename(lake / name).stat().st_size
        in_log(lake, relation, lambda add, name=name, size=size: add.update(path=name, size=size))
        bombs.add(name)
        with (
            pytest.raises(WarehouseError, match=f"{BOMB_ROWS} rows"),
            memhouse.open(lake) as warehouse,
        ):
            warehouse.sql(f'SELECT COUNT(*) FROM "{relation}"')
    assert damaged(lake) == bombs
    memhouse.lake.repair(lake)
    require_whole(lake)


def test_the_log_may_not_claim_absurd_rows(lake):
    def claim(add):
        add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": 60_000_000})

    in_log(lake, "values", claim)
    done = run_memhouse("runs", "--db", lake)
    assert done.returncode == 1
    assert "60000000 rows" in done.stderr
    assert done.stderr.count("\n") == 1
