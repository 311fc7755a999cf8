"""Functions of a project and of an installed package, wherever a user's own SQL is asked."""

import sys

import duckdb
import pytest

import memhouse
from memhouse.schema.errors import QueryError

from ..cli.test_completion import completed
from ..support.agent import agent_here
from ..support.command import run_memhouse
from ..support.made_runs import make_run

MINE = """-- Bytes in kB.
--
-- b: bytes
CREATE MACRO kb(b) AS b / 1000;
/* No header. */
CREATE OR REPLACE TEMP MACRO largest(n := 1) AS TABLE
SELECT workload, kb(peak_bytes) AS kb FROM peaks ORDER BY ALL DESC LIMIT n -- the end
"""
ASKED = "SELECT kb, twice(kb) AS twice FROM largest()"
ROWS = [{"kb": 2097152.0, "twice": 4194304.0}]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a warehouse and a file of macros, and an installed package with one."""
    package = tmp_path / "site/ours"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('it is imported')")
    (package / "twice.sql").write_text("CREATE MACRO twice(x) AS 2 * x")
    about = tmp_path / "site/ours-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[memhouse.macros]\nours = ours\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / "memhouse.toml").write_text('db = "m.duckdb"\nmacros = ["*.sql"]\n')
    (folder / "mine.sql").write_text(MINE)
    make_run(folder / "m.duckdb", "night", {"train/jit_step": 2000}, day=0)
    return folder


@pytest.mark.slow
def test_every_way_to_ask_sql_knows_them_and_no_warehouse_stores_them(project):
    db, mine = project / "m.duckdb", [project / "*.sql"]
    for options in ((), ("--files",), ("--write",)):
        done = run_memhouse("sql", ASKED, *options, "-f", "csv", cwd=project / "inner")
        assert (done.stdout, done.stderr) == ("kb,twice\n2097152.0,4194304.0\n", "")
    for read_only in (True, False):
        with memhouse.open(db, read_only=read_only, macros=mine) as warehouse:
            assert warehouse.sql(ASKED).table.to_pylist() == ROWS
            assert warehouse.sql(ASKED, files=True).table.to_pylist() == ROWS
    with agent_here(db, macros=[str(mine[0])]) as asked:
        assert asked.ask("sql", query=ASKED).rows("result") == ROWS
        listed = {row["view"]: row["answers"] for row in asked.ask("views").rows("views")}
        assert (listed["kb(b)"], listed["twice(x)"]) == ("Bytes in kB.", "")
    shown = run_memhouse("views", "kb", cwd=project).stdout
    assert [
        fact for fact in ("b          bytes", "CREATE MACRO kb(b) AS b / 1000") if fact in shown
    ]
    assert completed("views", "lar", cwd=project) == ["largest"]
    with duckdb.connect(str(db)) as connection:
        found = connection.sql("SELECT function_name FROM duckdb_functions() WHERE NOT internal")
        assert {"kb", "largest", "twice"} & {name for (name,) in found.fetchall()} == set()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CREATE MACRO a(b) AS b; DROP TABLE runs", "not 'DROP TABLE runs'"),
        ("CREATE TABLE t AS SELECT 1", "only CREATE MACRO"),
        ("CREATE MACRO main.a(b) AS b", "only CREATE MACRO"),
        ("CREATE MACRO gib(b) AS b", "gib is a function already"),
        ("CREATE MACRO Sum(b) AS b", "sum is a function already"),
        ("CREATE MACRO a(b) AS missing(b)", "a: "),
        ("CREATE MACRO a(b", "syntax error"),
        ("\udcff", "no text in UTF-8"),
        (None, "no file fits"),
    ],
)
def test_a_wrong_file_is_refused_with_one_line(project, text, says):
    file = project / "wrong.txt"
    if text is not None:
        file.write_text(text, errors="surrogateescape")
    with memhouse.open(project / "m.duckdb", macros=[file]) as warehouse:
        with pytest.raises(QueryError) as error:
            warehouse.sql("SELECT 1")
        assert says in str(error.value)
        assert "wrong.txt" in str(error.value)
        assert "\n" not in str(error.value)
        assert len(warehouse.runs()) == 1
