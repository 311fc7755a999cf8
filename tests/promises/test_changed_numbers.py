"""A number that is changed in a dump, and that others of its files tell too, is noticed."""

import random
import re
from collections import defaultdict

import pytest

from memhouse.queries.verify import verify

from ..support.dumps import copy_dump
from ..support.warehouse import fill, reading, rows

pytestmark = pytest.mark.slow

# One with loops for each platform, one of before stack frames, and one that is all output.
SAMPLES = {
    "cpu": "cpu/jax-0.10.2/module_0018*",
    "cpu before": "cpu/jax-0.4.35/module_0019*",
    "cpu output": "cpu/jax-0.10.2/module_0002*",
    "gpu": "gpu/decode-h100/module*",
    "tpu": "tpu/decode8-v5e/module*",
}
# By the ending of the file: where a number stands.
NUMBERS = {
    "-buffer-assignment.txt": (
        r"^allocation \d+: size (\d+)",
        r"^allocation .*, color (\d+)",
        r"^allocation .*, parameter (\d+)",
        r"^allocation .*, shape \|\w+\[(\d+)",
        r"^ value: <(\d+) ",
        r"^ value: <\d+ [^ {>]*?(\d+)[ {]",
        r"^ value: <\d+ [^ {>]+\{(\d+)",
        r"^ value: <[^>]* @(\d+)>",
        r"^ value: .*\): \w+\[(\d+)",
        r"^ value: .*\): \w+\[[\d,]*\]\{[\d,]*:T\((\d+)",
    ),
    "-buffer-assignment-values.txt": (
        r"^Total bytes used: (\d+)",
        r"^<(\d+) ",
        r"^  [^ ,]*?(\d+)(?: \{[\d,]*\})?$",
        r"^  [^ ,]*?(\d+), operand",
        r"^  [^ ,]+, operand (\d+)",
        r"^  [^ ,]+, operand \d+ \{(\d+)",
    ),
    "-live-range.txt": (
        r"^HloLiveRange \(max (\d+)\)",
        r"^    (\d+):",
        r"^    \d+:.*?(\d+)$",
        r"^    [^ {:]*?(\d+)\{[\d,]*\}:\d+-",
        r"^    [^ {]+\{(\d+)[\d,]*\}:\d+-",
        r"^    [^ {]+\{[\d,]*\}:(\d+)-\d+$",
        r"^    [^ {:]*?(\d+)\{[\d,]*\}: \d+ bytes",
    ),
    "after_optimizations.txt": (
        r"^  (?:ROOT )?%?[^ ]*?(\d+) = ",
        r"^%?[^ (]*?(\d+) (?:\(.*\) -> .* )?\{$",
        r"entry_computation_layout=\{\(\w+\[(\d+)",
        r'^(\d+) "',
        r"^(\d+) \{file_name_id",
        r"^(\d+) \{file_location_id",
    ),
    "-memory-usage-report.txt": (r"\(color=(\d+)\)",),
}
# What ingest itself holds a dump against; `verify` has more checks.
TOLD_AT_INGEST = {
    "computations_are_called",
    "frames_are_named",
    "references_lead_to_rows",
    "liveness_follows_from_text",
    "names_are_in_hlo_text",
}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Dumps with one number changed, beside those they are made of; what is changed in each."""
    folder = tmp_path_factory.mktemp("changed")
    chance, changed = random.Random(1), {}
    for sample, dump in SAMPLES.items():
        base = copy_dump(dump, folder / "night" / sample)
        for ending, patterns in NUMBERS.items():
            for path in base.glob(f"*{ending}"):
                text = path.read_text()
                for pattern in patterns:
                    if not (found := list(re.finditer(pattern, text, re.MULTILINE))):
                        continue
                    place = chance.choice(found)
                    number = int(place[1]) + chance.choice((1, 1, 2, 1000))
                    other = folder / "night" / f"{sample} {len(changed)}"
                    other.mkdir()
                    for beside in base.iterdir():
                        (other / beside.name).symlink_to(beside)
                    (other / path.name).unlink()
                    start, end = place.span(1)
                    (other / path.name).write_text(f"{text[:start]}{number}{text[end:]}")
                    line = text.count("\n", 0, start) + 1
                    changed[other.name] = f"{path.name}:{line}: {place[1]} -> {number}", pattern
    fill(folder / "db", folder / "night")
    return folder / "db", changed


@pytest.fixture(scope="module")
def noticed(night):
    """By workload, the problems of its files and the breaches of its module."""
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


def test_a_changed_number_is_noticed(night, noticed):
    _, changed = night
    assert [what for name, what in changed.items() if not noticed[name]] == []
    tried = {pattern for _, pattern in changed.values()}
    assert tried == {pattern for patterns in NUMBERS.values() for pattern in patterns}
    assert [noticed[sample] for sample in SAMPLES] == [[]] * len(SAMPLES)


def test_what_is_at_odds_with_the_text_is_not_ok(night, noticed):
    ok = [name for (name,) in rows(night[0], "SELECT workload FROM dumps WHERE status = 'ok'")]
    checks = {said.partition(":")[0] for name in ok for said in noticed[name]}
    assert ok
    assert checks.isdisjoint(TOLD_AT_INGEST)


def test_a_value_of_another_name_or_space_is_noticed(tmp_path, db):
    for number, (old, new) in enumerate(
        [("<122 cholesky.0{0}", "<122 cholesky.0{1}"), ("{0} @0>", "{0} @1>")]
    ):
        folder = copy_dump(SAMPLES["cpu"], tmp_path / "night" / str(number))
        (path,) = folder.glob("*-values.txt")
        path.write_text(path.read_text().replace(old, new, 1))
    (summary,) = fill(db, tmp_path / "night")
    assert [f"night/{number}/" in summary.problems[number] for number in range(2)] == [True, True]
