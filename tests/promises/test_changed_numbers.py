"""A number that is changed in a dump is noticed, or changes what depends on it and no more."""

import random
import re
from collections import defaultdict

import pytest

from memhouse.queries.verify import verify
from memhouse.schema.arrow import tables

from ..support.changed_numbers import KINDS
from ..support.dumps import copy_dump
from ..support.rounds import rounds
from ..support.warehouse import fill, reading, rows

# Hundreds of dumps are read.
pytestmark = [pytest.mark.slow, pytest.mark.scheduled]

# One with loops for each platform, one of before stack frames, and one that is all output.
SAMPLES = {
    "cpu": "cpu/jax-0.10.2/module_0018*",
    "cpu before": "cpu/jax-0.4.35/module_0019*",
    "cpu output": "cpu/jax-0.10.2/module_0002*",
    "gpu": "gpu/decode-h100/module*",
    "tpu": "tpu/decode8-v5e/module*",
}
# Kinds that stand in no sample, so that nothing is known of them.
UNTRIED = {"parameter's index", "replicas", "donor"}
# Hashes of a dump's content and name: they change with it.
HASHES = {
    "module_id",
    "program_id",
    "skeleton_id",
    "dump_id",
    "flags_id",
    "files_id",
    "sha256",
    "bytes",
    "path",
    "workload",
    "series_id",
}


def numbers(text, kind, chance):
    """Two places where a number of this kind stands."""
    found = list(re.finditer(kind.pattern, text, re.MULTILINE))
    return chance.sample(found, min(len(found), 2))


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Dumps with one number changed, beside the ones they are made of; what is in which."""
    folder = tmp_path_factory.mktemp("changed")
    chance = random.Random(1)
    changed = {}
    for platform, pattern in SAMPLES.items():
        base = copy_dump(pattern, folder / "night" / platform)
        for kind in KINDS:
            for path in base.glob(f"*{kind.file}"):
                text = path.read_text()
                for i, place in enumerate(numbers(text, kind, chance)):
                    workload = f"{platform}, {kind.name}, {i}"
                    number = int(place[1]) + chance.choice((1, 1, 2, 1000))
                    if i >= rounds(1):
                        continue  # One of the two is enough but on a schedule.
                    other = folder / "night" / workload
                    other.mkdir()
                    for beside in base.iterdir():
                        (other / beside.name).symlink_to(beside)
                    (other / path.name).unlink()
                    start, end = place.span(1)
                    (other / path.name).write_text(f"{text[:start]}{number}{text[end:]}")
                    line = text.count("\n", 0, start) + 1
                    changed[workload] = (
                        platform,
                        kind,
                        f"{path.name}:{line}: {place[1]} -> {number}",
                    )
    db = folder / "db"
    fill(db, folder / "night")
    return db, changed


@pytest.fixture(scope="module")
def noticed(night):
    """Who noticed: by workload, the problems of its files and the breaches of its module."""
    db, _ = night
    found = defaultdict(list)
    query = """SELECT workload, message FROM dump_files JOIN dumps USING (dump_id)
        WHERE dump_files.status <> 'ok'"""
    for workload, message in rows(db, query):
        found[workload].append(message)
    with reading(db) as store:
        for row in verify(store).rows.table.to_pylist():
            found[row["module"].split("/")[1]].append(f"{row['check']}: {row['breach']}")
    return found


@pytest.fixture(scope="module")
def columns(night):
    """Every table by workload: its columns, each with its values in order."""
    db, _ = night
    with reading(db) as store:
        duck = store.connection
        found = defaultdict(dict)
        keys = ("dump_id", "module_id", "flags_id", "files_id")
        owners = f"(SELECT workload, {', '.join(keys)} FROM dumps)"
        for name in tables():
            has = [row[0] for row in duck.sql(f'DESCRIBE "{name}"').fetchall()]
            key = next((key for key in keys if key in has), None)
            if key is None:
                continue
            # What starts with `_` stores another column.
            chosen = [column for column in has if column not in HASHES and column[0] != "_"]
            table = duck.sql(
                f'SELECT d.workload AS w, {", ".join(f"t.{c}" for c in chosen)} FROM "{name}" t '
                f"JOIN {owners} d ON d.{key} = t.{key} ORDER BY ALL"
            ).fetchall()
            for workload, *row in table:
                found[workload].setdefault(name, []).append(row)
            found[None][name] = chosen
        return found


def difference(columns, base, other):
    """The columns that differ, as `table.column`."""
    found = set()
    for table, names in columns[None].items():
        # It sums up what other tables have, and `verify` holds that it does.
        if table == "peak_parts":
            continue
        a, b = columns[base].get(table, []), columns[other].get(table, [])
        if a == b:
            continue
        both = {tuple(map(repr, row)) for row in a} ^ {tuple(map(repr, row)) for row in b}
        ours = [row for row in a if tuple(map(repr, row)) in both]
        theirs = [row for row in b if tuple(map(repr, row)) in both]
        if len(ours) != len(theirs):
            found.add(f"{table} rows")
            continue
        for i, name in enumerate(names):
            if any(x[i] != y[i] for x, y in zip(ours, theirs, strict=True)):
                found.add(f"{table}.{name}")
    return found


def test_a_changed_number_is_noticed_or_changes_what_depends_on_it(night, noticed, columns):
    _, changed = night
    failures = []
    for workload, (platform, kind, what) in changed.items():
        if not noticed[workload]:
            found = difference(columns, platform, workload)
            if not (found or kind.unread):
                failures.append(f"{what}: this changes nothing, and nobody notices")
            if not found <= kind.changes:
                failures.append(f"{what}: this changes {found - kind.changes}")
    tried = {kind.name for _, kind, _ in changed.values()}
    assert {kind.name for kind in KINDS} - tried == UNTRIED
    assert not failures, "\n".join(failures)


# What ingest itself holds a dump against; `verify` has more checks.
TOLD_AT_INGEST = {
    "computations_are_called",
    "frames_are_there",
    "liveness_follows_from_text",
    "names_are_in_hlo_text",
}


def test_what_is_at_odds_with_the_text_is_not_ok(night, noticed):
    db, _ = night
    ok = [name for (name,) in rows(db, "SELECT workload FROM dumps WHERE status = 'ok'")]
    checks = {said.partition(":")[0] for name in ok for said in noticed[name]}
    assert ok
    assert checks.isdisjoint(TOLD_AT_INGEST)


def test_an_unchanged_dump_is_clean(noticed):
    assert [noticed[platform] for platform in SAMPLES] == [[]] * len(SAMPLES)


def test_a_value_of_another_name_or_space_is_noticed(tmp_path, db):
    for number, (old, new) in enumerate(
        [("<122 cholesky.0{0}", "<122 cholesky.0{1}"), ("{0} @0>", "{0} @1>")]
    ):
        folder = copy_dump(SAMPLES["cpu"], tmp_path / "night" / str(number))
        (path,) = folder.glob("*-values.txt")
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    (summary,) = fill(db, tmp_path / "night")
    assert [f"night/{number}/" in problem for number, problem in enumerate(summary.problems)] == [
        True,
        True,
    ]
