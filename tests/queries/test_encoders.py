"""CSV and JSON: the same bytes from every command and in every file."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from time import perf_counter

import pyarrow as pa
import pytest

from memhouse.queries.encoders import csv_parts, json_parts

from ..support.command import run_memhouse


def as_csv(table):
    return "".join(csv_parts(table))


def as_json(table):
    return "".join(json_parts(table))


VIEWS = ["trends", "peaks", "peak_buffers", "runs_summary", "dumps", "entry_shapes"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("output", ["csv", "json"])
def test_a_query_and_an_export_are_the_same_bytes(history, tmp_path, view, output):
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
        pa.array([datetime(2026, 10, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "2026-10-01T00:00:00+00:00",
        '"2026-10-01T00:00:00+00:00"',
    ),
    (
        pa.array([datetime(2026, 10, 1, 3, 4, 5, 600000, UTC), None], pa.timestamp("us", "UTC")),
        "2026-10-01T03:04:05.600000+00:00",
        '"2026-10-01T03:04:05.600000+00:00"',
    ),
]


@pytest.mark.parametrize(("column", "in_csv", "in_json"), VALUES, ids=lambda v: str(v)[:24])
def test_values(column, in_csv, in_json):
    table = pa.table({"value": column, "after": [1, 2]})
    assert as_csv(table) == f"value,after\n{in_csv},1\n,2\n"
    lines = as_json(table).split("\n")
    assert lines[2] == f'  "value": {in_json},'
    assert json.loads(as_json(table))[1] == {"value": None, "after": 2}


def test_a_line_is_never_empty():
    found = as_csv(pa.table({"only": [None, ""]}))
    assert found == 'only\n""\n""\n'
    assert len(list(csv.reader(io.StringIO(found)))) == 3


def test_without_rows_there_is_a_heading():
    table = pa.table({"a": pa.array([], pa.int64()), "b,c": pa.array([], pa.string())})
    assert as_csv(table) == 'a,"b,c"\n'
    assert as_json(table) == "[]\n"
    assert as_json(pa.table({})) == "[]\n"


def test_columns_of_one_name_are_all_there():
    table = pa.table([[1], [2]], names=["a", "a"])
    assert as_csv(table) == "a,a\n1,2\n"
    assert json.loads(as_json(table)) == [{"a": 1, "a_2": 2}]


def test_many_parts_are_one_text():
    table = pa.table({"n": range(10_000), "text": [f"w{n % 7}" for n in range(10_000)]})
    found = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert [int(row["n"]) for row in found] == list(range(10_000))
    assert json.loads(as_json(table)) == table.to_pylist()


@pytest.mark.parametrize("encode", [as_csv, as_json])
def test_a_hundred_thousand_rows_take_seconds(encode):
    count = 100_000
    time = datetime(2026, 10, 1, tzinfo=UTC)
    table = pa.table(
        {
            **{f"n{i}": range(count) for i in range(10)},
            "share": [n / 7 for n in range(count)],
            "name": [f"fusion.{n}" for n in range(count)],
            "at": [time] * count,
        }
    )
    start = perf_counter()
    assert encode(table).count("\n") > count
    assert perf_counter() - start < 5
