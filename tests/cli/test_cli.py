"""The command: formats, statuses, and what goes to which stream."""

import csv
import json
import re
import subprocess
import sys

import pytest

from memhouse import __version__
from memhouse.cli.app import COMMANDS
from memhouse.schema.tables import metadata

from ..support.command import MEMHOUSE, run_memhouse
from ..support.console import on_terminal
from ..support.dumps import one_file
from ..support.warehouse import rows

FORMATS = ["table", "csv", "json", "markdown"]
SELECT = "SELECT run_id, source FROM runs ORDER BY run_id"


def ask(db, *args, **options):
    """What a command that goes well prints."""
    run = run_memhouse(*args, "--db", db, **options)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def refused(status, *args, **options):
    """What a command that fails says; its last line."""
    run = run_memhouse(*args, **options)
    assert run.returncode == status
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    return run.stderr


def test_help_names_every_command_and_where_to_start():
    said = run_memhouse("--help").stdout
    assert all(f"│ {command} " in said for command in COMMANDS)
    assert "memhouse demo" in said
    assert run_memhouse("-h").stdout == said
    assert run_memhouse("--version").stdout == f"memhouse {__version__}\n"


def test_help_imports_no_optional_package_and_nothing_that_draws():
    heavy = ("bokeh", "harlequin", "jax", "mcp", "plotext")
    script = f"""
import sys
from memhouse.cli import run
sys.argv = ["memhouse", "--help"]
run()
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == "[]\n"


def resnet(found):
    """The row of its main memory."""
    (row,) = [row for row in found if (row["workload"], row["space"]) == ("resnet-v5e", "hbm")]
    return row


def test_peaks_as_a_table(filled):
    done = run_memhouse("peaks", "--db", filled)
    assert done.returncode == 0
    assert done.stderr.startswith("≈ ")
    first, *rest = done.stdout.splitlines()
    assert {"run", "workload", "module", "space", "peak_bytes", "total_bytes"} <= set(first.split())
    (line,) = [line for line in rest if "resnet-v5e" in line and " hbm " in line]
    assert line.split()[:7] == [
        "resnet-v5e", "jit_train", "hbm", "145.31", "MiB", "153.83", "MiB",
    ]  # fmt: skip


def test_peaks_as_csv_and_json_have_the_same_names_and_figures(filled):
    as_csv = list(csv.DictReader(ask(filled, "peaks", "--format", "csv").splitlines()))
    as_json = json.loads(ask(filled, "peaks", "-f", "json"))
    assert [list(row) for row in as_json] == [list(row) for row in as_csv]
    assert (resnet(as_csv)["peak_bytes"], resnet(as_csv)["run"]) == ("152370176", "tpu")
    assert resnet(as_json)["peak_bytes"] == 152370176
    # What packing decides is null of an estimate.
    sizes = [row[name] for row in as_json for name in row if name.endswith("_bytes")]
    assert {type(size) for size in sizes if size is not None} == {int}
    assert {row["origin"] for row in as_json} == {"dumped", "estimated"}
    main = [row["peak_bytes"] for row in as_json if row["space"] == "default"]
    assert main == sorted(main, reverse=True)
    some = ask(filled, "peaks", "--run", "tpu", "--workload", "flash-v5e", "-fjson")
    assert [row["workload"] for row in json.loads(some)] == ["flash-v5e"] * 2


def test_peaks_as_markdown(filled):
    done = run_memhouse("peaks", "--format", "markdown", "--db", filled)
    assert (done.returncode, done.stderr) == (0, "7 helpers, at most 40.00 MiB (--all)\n")
    heading, ruler, *found = done.stdout.splitlines()
    assert found[-2] == ""
    assert found[-1].startswith("≈ ")
    del found[-2:]
    assert "| space | peak_bytes |" in heading
    assert set(ruler) == set("| -:")
    assert any("| resnet-v5e | jit_train | hbm | 145.31 MiB |" in line for line in found)
    assert {line.count(" | ") for line in found} == {heading.count(" | ")}


def test_times_are_utc_wherever_one_is(filled):
    here = ask(filled, "runs", env={"TZ": "UTC"})
    assert ask(filled, "runs", env={"TZ": "Asia/Tokyo"}) == here


def test_wrong_usage_names_what_is_wrong(filled, tmp_path):
    gone = tmp_path / "gone.toml"
    wrong = {
        ("owners", "decode-h100", "--by", "line"): "--by",
        ("owners", "decode-h100", "--by", "op", "--callers", "1"): "--callers",
        ("owners", "decode-h100", "--roles", gone): "--roles",
        ("owners", "decode-h100", "--by", "op", "--roles", gone): "--roles",
        ("buffers", "gone"): "'gone'",
        ("buffers", "jit_mixed"): "jit_mixed",
        ("tables", "nope"): "nope",
        ("peaks", "--format", "gone"): "gone",
        ("sql", "DROP TABLE runs"): "--write",
        ("sql", "DELETE FROM runs"): "--write",
        ("sql", "CREATE TABLE mine AS SELECT 1"): "--write",
        ("sql", "SELEC 1"): "SELEC",
        ("sql", "SELECT * FROM nope"): "nope",
        ("sql", "SELECT CAST('x' AS INTEGER)"): "'x'",
        ("sql", "SELECT ':100:'::INTEGER"): "':100:'",
    }
    before = filled.read_bytes()
    failures = [
        args for args, named in wrong.items() if named not in refused(2, *args, "--db", filled)
    ]
    assert failures == []
    assert filled.read_bytes() == before
    assert "gone" in refused(2, "views", "gone")
    assert "gone" in refused(2, "gone")


def test_tables_and_views_are_listed(filled):
    found = json.loads(ask(filled, "tables", "-f", "json"))
    counted = {row["table"]: row["rows"] for row in found}
    assert set(counted) <= set(metadata.tables)
    assert counted["dumps"] == 23
    assert json.loads(ask(filled, "tables", "dumps", "-f", "json"))[0]["column"] == "dump_id"
    listed = json.loads(run_memhouse("views", "-f", "json").stdout)
    assert "peaks" in [row["view"] for row in listed]
    said = run_memhouse("views", "peaks").stdout
    assert "SELECT" in said
    assert "peak_bytes" in said


def test_sql_from_an_argument_or_standard_input(filled):
    found = ask(filled, "sql", "SELECT COUNT(*) AS dumps FROM dumps", "--format", "csv")
    assert found == "dumps\n23\n"
    found = ask(filled, "sql", "-", "-f", "csv", stdin="SELECT 1\n  AS one;\n")
    assert found == "one\n1\n"


VALUES = [
    # Of every kind.
    *("NULL", "true", "1.5", "DATE '2026-10-01'", "TIMESTAMPTZ '2026-10-01 03:00:00+00'"),
    *("INTERVAL 1 DAY", "[1, 2]", "{'a': 1}", "'x'::BLOB", "uuid()"),
    # No numbers, and control characters.
    *("CAST('nan' AS DOUBLE)", "CAST('-infinity' AS DOUBLE)"),
    "'a|b' || chr(10) || chr(13) || chr(27) || '[31m'",
]


def test_values_can_be_printed(filled):
    """And columns of one name."""
    query = f"SELECT {', '.join(VALUES)}, 7 AS seven, 11 AS a, 22 AS a"
    shown = {output: ask(filled, "sql", query, "-f", output) for output in FORMATS}
    assert json.loads(shown["json"], parse_constant=pytest.fail)[0]["seven"] == 7
    heading, row = csv.reader(shown["csv"].splitlines(keepends=True))
    assert len(heading) == len(row) == len(VALUES) + 3
    for output, lines in (("table", 3), ("markdown", 4)):
        assert "\x1b" not in shown[output]
        assert len(shown[output].split("\n")) == lines
    for found in shown.values():
        assert re.search(r"\b7\b.*\b11\b.*\b22\b", found, re.DOTALL)


def test_names_are_no_markup_and_no_emoji(filled):
    found = ask(filled, "sql", "SELECT '[bold]x[/bold]' AS \"[red]\"")
    assert found.split() == ["[red]", "[bold]x[/bold]"]
    found = ask(filled, "sql", "SELECT 'file.txt:100: wrong' AS \":smile:\"")
    assert found.split() == [":smile:", "file.txt:100:", "wrong"]


def test_no_rows_are_still_a_table(filled):
    expected = {"csv": "run_id\n", "json": "[]\n", "markdown": "| run_id |\n| --- |\n"}
    query = "SELECT run_id FROM runs WHERE false"
    assert {output: ask(filled, "sql", query, "-f", output) for output in expected} == expected
    run = run_memhouse("sql", query, "--db", filled)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr


def test_the_warehouse_is_named_by_option_variable_or_habit(filled, tmp_path):
    found = ask(filled, "sql", SELECT, "-f", "csv")
    by_variable = run_memhouse("sql", SELECT, "-f", "csv", env={"MEMHOUSE_DB": str(filled)})
    assert by_variable.stdout == found
    by_url = run_memhouse("sql", SELECT, "-f", "csv", "--db", f"duckdb:///{filled}")
    assert by_url.stdout == found
    (tmp_path / "memhouse.duckdb").symlink_to(filled)
    assert run_memhouse("sql", SELECT, "-f", "csv", cwd=tmp_path).stdout == found
    assert ask(filled, "sql", SELECT, "-f", "csv", env={"MEMHOUSE_DB": "gone"}) == found


def test_without_a_warehouse_there_is_a_hint(tmp_path):
    for command in (["peaks"], ["tables"], ["sql", "SELECT 1"], ["verify"]):
        said = refused(1, *command, cwd=tmp_path)
        assert said.startswith("error: ")
        assert "memhouse.duckdb" in said
        assert "memhouse ingest" in said
    assert list(tmp_path.iterdir()) == []
    for url in ("postgresql://host/base", "sqlite:///x", "://"):
        said = refused(1, "peaks", "--db", url)
        assert said.startswith("error: ")
        assert len(said.splitlines()) == 1


def test_ingest_speaks_on_stderr_only(tmp_path):
    run = run_memhouse("ingest", one_file("seeds/002*"), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "")
    assert " 1 new module" in run.stderr
    assert "\x1b" not in run.stderr
    again = run_memhouse("ingest", one_file("seeds/002*"), cwd=tmp_path)
    assert " 0 new modules, 1 unchanged" in again.stderr


def test_wrong_usage_of_ingest(tmp_path):
    wrong = {
        (): "PATH",
        ("a", "--replace"): "--run NAME",
        ("x/night", "y/night"): "night",
        ("a", "--at", "yesterday"): "yesterday",
        ("a", "--label", "novalue"): "KEY=VALUE",
        ("a", "--label", "=x"): "KEY=VALUE",
        ("a", "--jobs", "0"): "--jobs",
    }
    failures = [
        args
        for args, named in wrong.items()
        if named not in refused(2, "ingest", *args, cwd=tmp_path)
    ]
    assert failures == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["table", "csv", "json"])
def test_a_closed_pipe_is_no_failure(filled, output):
    query = "SELECT repeat(instruction, 99) FROM instructions LIMIT 2000"
    command = f"{MEMHOUSE} sql --db {filled} -f {output} '{query}' | head -c 10"
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert run.stderr == ""
    assert run.returncode == 0


def test_a_terminal_shows_color_unless_told_not_to(tmp_path):
    shown = on_terminal("memhouse peaks --db gone", tmp_path)
    assert "\x1b[1;31merror:" in shown
    shown = on_terminal("NO_COLOR=1 memhouse peaks --db gone", tmp_path)
    assert "error:" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_a_terminal_shows_a_timeline_as_a_chart(filled, tmp_path):
    shown = on_terminal(f"NO_COLOR=1 memhouse timeline resnet-v5e --db {filled}", tmp_path)
    assert "145.31 MiB" in shown
    assert len(shown.splitlines()) < 60
    assert max(map(len, shown.replace("\r", "").splitlines())) <= 80
    assert len(run_memhouse("timeline", "resnet-v5e", "--db", filled).stdout.splitlines()) > 100


def test_nothing_but_reading_leaves_the_file_as_it_is(filled):
    before = filled.read_bytes()
    for command in (["peaks"], ["verify"]):
        assert run_memhouse(*command, "--db", filled).returncode == 0
    assert filled.read_bytes() == before
    assert rows(filled, "SELECT COUNT(*) FROM runs") == [(4,)]
