"""Files that memhouse writes: their names, that they are whole, and CSV and JSON in them."""

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.queries.encoders import csv_parts, json_parts
from memhouse.report.site import file_name, page_name, told_apart
from memhouse.schema.errors import FileError
from memhouse.schema.private_folder import whole_file

from ..support.command import run_memhouse
from ..support.rounds import rounds

# --- names of files made of names from dumps --------------------------------------------

PARTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=150), min_size=2, max_size=3)
SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("llama-v5e-jax0.7.0", "jit_f", "tpu"), "llama-v5e-jax0.7.0.jit_f.tpu"),
        (("../../etc", "passwd"), "_.._etc.passwd"),
        (("a/b", "c\\d:e"), "a_b.c_d_e"),
        ((".", "jit_f"), "jit_f"),
        (("", ""), "_"),
        # A device of Windows is no name.
        (("con", "jit_f"), "_con.jit_f"),
        (("console", "jit_f"), "console.jit_f"),
    ],
)
def test_a_name_is_readable_and_of_no_other_folder(parts, name):
    assert file_name(*parts) == name


@settings(max_examples=rounds(50))
@given(PARTS, PARTS)
def test_different_parts_make_different_pages_on_any_disk(some, others):
    for name in (file_name(*some), page_name(*some)):
        assert name
        assert set(name) <= SAFE
        assert len(name) <= 120
        assert not name.startswith((".", "-"))
    same_files = page_name(*some).lower() == page_name(*others).lower()
    assert same_files == (some == others)


def test_names_that_are_nearly_the_same_are_told_apart():
    named = told_apart({1: "x", 2: "x", 3: "y"})
    assert named[3] == "y"
    assert named[1] != named[2]
    assert all(name.startswith("x-") for name in (named[1], named[2]))


# --- written whole or not at all --------------------------------------------------------

# Begins to write a file, and goes on once it is told to.
OTHER = """
import sys
from pathlib import Path
from memhouse.schema.private_folder import whole_file

with whole_file(Path(sys.argv[1])) as partial:
    partial.write_text("the other's")
    print("begun", flush=True)
    sys.stdin.readline()
"""


def test_two_processes_write_one_file_and_the_last_wins(tmp_path):
    file = tmp_path / "x.html"
    command = [sys.executable, "-c", OTHER, str(file)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout
        assert other.stdin
        assert other.stdout.readline() == "begun\n"
        with whole_file(file) as partial:
            partial.write_text("mine")
        assert file.read_text() == "mine"
        other.communicate("go on\n", timeout=60)
    assert other.returncode == 0
    assert file.read_text() == "the other's"
    assert [each.name for each in tmp_path.iterdir()] == ["x.html"]


def test_a_name_may_be_the_longest_that_a_disk_takes(tmp_path):
    for letter in ("x", "\N{GREEK SMALL LETTER OMEGA}"):
        file = tmp_path / (letter * (255 // len(letter.encode())))
        with whole_file(file) as partial:
            partial.write_text("mine")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["mine", "mine"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    (tmp_path / "link.html").symlink_to("none/x.html")
    for name in ("none/x.html", "link.html"):
        with pytest.raises(FileError) as error, whole_file(tmp_path / name) as partial:
            partial.write_text("mine")
        assert str(tmp_path / name) in str(error.value)
        assert str(error.value).endswith(str(tmp_path / "none"))


# --- CSV and JSON -----------------------------------------------------------------------


def as_csv(table):
    return "".join(csv_parts(table))


def as_json(table):
    return "".join(json_parts(table))


def test_a_query_and_an_export_are_the_same_bytes(history, tmp_path):
    for view, output in (("runs_summary", "csv"), ("entry_shapes", "json"), ("dumps", "csv")):
        file = tmp_path / f"rows.{output}"
        assert run_memhouse("export", view, file, "--db", history).returncode == 0
        query = f"SELECT * FROM {view} ORDER BY ALL"
        asked = run_memhouse("sql", query, "--db", history, "-f", output)
        assert asked.stdout.encode() == file.read_bytes()
        assert len(asked.stdout) > 100


VALUES = [
    (pa.array([True, None]), "true", "true"),
    (pa.array([2**62, None]), str(2**62), str(2**62)),
    (pa.array([1.0, None]), "1.0", "1.0"),
    (pa.array([1e-07, None]), "1e-07", "1e-07"),
    (pa.array([float("nan"), None]), "", "null"),
    (pa.array([float("-inf"), None]), "", "null"),
    (pa.array([Decimal("7"), None]), "7", "7"),
    (pa.array([Decimal("1.50"), None]), "1.5", "1.5"),
    (
        pa.array([1, None], pa.timestamp("ns")),
        "1970-01-01T00:00:00.000000001",
        '"1970-01-01T00:00:00.000000001"',
    ),
    (pa.array([1, None], pa.time64("ns")), "00:00:00.000000001", '"00:00:00.000000001"'),
    (pa.array(["", None]), '""', '""'),
    (pa.array(["plain", None]), "plain", '"plain"'),
    (pa.array(['a,"b"', None]), '"a,""b"""', r'"a,\"b\""'),
    (pa.array(["a\rb", None]), '"a\rb"', r'"a\rb"'),
    (pa.array(["名\x1b", None]), "名\x1b", r'"\u540d\u001b"'),
    (pa.array([[1, None], None]), '"[1, null]"', "[1, null]"),
    (pa.array([{"a": "x"}, None]), '"{""a"": ""x""}"', '{"a": "x"}'),
    (pa.array(["x", None]).dictionary_encode(), "x", '"x"'),
    (
        pa.array([datetime(2026, 10, 1), None], pa.timestamp("us", "UTC")),
        "2026-10-01T00:00:00+00:00",
        '"2026-10-01T00:00:00+00:00"',
    ),
    (
        pa.array([datetime(2026, 10, 1, 3, 4, 5, 600000, UTC), None], pa.timestamp("us", "UTC")),
        "2026-10-01T03:04:05.600000+00:00",
        '"2026-10-01T03:04:05.600000+00:00"',
    ),
]


def test_each_type_has_its_text():
    for column, in_csv, in_json in VALUES:
        table = pa.table({"value": column, "after": [1, 2]})
        assert as_csv(table) == f"value,after\n{in_csv},1\n,2\n"
        assert as_json(table).split("\n")[2] == f'  "value": {in_json},'
        assert json.loads(as_json(table))[1] == {"value": None, "after": 2}


def test_no_line_row_or_column_is_lost():
    found = as_csv(pa.table({"only": [None, ""]}))
    assert found == 'only\n""\n""\n'
    assert len(list(csv.reader(io.StringIO(found)))) == 3

    empty = pa.table({"a": pa.array([], pa.int64()), "b,c": pa.array([], pa.string())})
    assert as_csv(empty) == 'a,"b,c"\n'
    assert as_json(empty) == as_json(pa.table({})) == "[]\n"

    same = pa.table([[1], [2]], names=["a", "a"])
    assert as_csv(same) == "a,a\n1,2\n"
    assert json.loads(as_json(same)) == [{"a": 1, "a_2": 2}]

    # Many parts are one text.
    long = pa.table({"n": range(10_000), "text": [f"w{n % 7}" for n in range(10_000)]})
    rows = list(csv.DictReader(io.StringIO(as_csv(long))))
    assert [int(row["n"]) for row in rows] == list(range(10_000))
    assert json.loads(as_json(long)) == long.to_pylist()
