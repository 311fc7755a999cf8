"""Every command says the same of a lake as of the DuckDB file of the same dumps."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memhouse
import memhouse.lake
from memhouse.cli.app import COMMANDS, build_app
from memhouse.schema.errors import QueryError

from ..support.command import run_memhouse
from ..support.dumps import DUMPS
from ..support.lakes import lake_of
from ..support.warehouse import fill

NIGHT = "2026-10-05"
COMPILER = Path(__file__).parents[1] / "support/fake_compiler.py"
# Of the ten nights: each command with the exit status that it must have.
READING = {
    "runs --format json --wait 5": 0,
    f"modules --run {NIGHT} --format csv": 0,
    "peaks --all": 0,
    "owners resnet-h100 --callers 2 --format markdown": 0,
    "buffers decode-v5e --run 2026-10-02 --callers 1": 0,
    "saved llama-v5e": 0,
    "donations llama-v5e": 0,
    "advise llama-v5e --run 2026-10-08": 0,
    "kernels": 0,
    "passes llama-v5e": 0,
    "timeline llama-v5e --format csv": 0,
    "fragmentation --format json": 0,
    "trends --workload llama-v5e --figure total": 0,
    "since decode-v5e --figure temp": 0,
    "diff 2026-10-01 2026-10-10 --by scope": 0,
    f"check --run {NIGHT} --max-growth 1%": 1,
    # Of tables with shapes, a file also has the two columns that store them.
    "tables live_ranges": 0,
    "export trends {out}/wide.csv --wide": 0,
    "export peaks {out}/peaks.parquet --where peak_bytes>1000": 0,
    "export llama-v5e {out}/llama.pftrace": 0,
    "owners no-such-module": 2,
    "diff 2026-10-01 no-such-run": 2,
    "prune no-such-run": 2,
    "sql SELEC": 2,
}
# Statements have blanks.
STATEMENTS = {
    "SELECT * FROM trends ORDER BY ALL": "csv",
    'SELECT module_id, COUNT(*), SUM(size_bytes) FROM "values" GROUP BY 1 ORDER BY 1': "json",
    "SELECT shape FROM values ORDER BY 1 LIMIT 5": "table",
    "SELECT run_at, ingested_at FROM runs ORDER BY run_seq": "markdown",
    "SELECT * FROM no_such_table": None,
    "SELECT no_such_column FROM runs": None,
    "SET threads = 1": None,
}
# What these change is compared below: as rows, since they note the time.
WRITING = {"ingest", "record", "label", "prune"}
NOT_COMPARED = {
    "demo": "it makes a file of its own",
    "doctor": "it opens no warehouse",
    "views": "it opens no warehouse",
    "shell": "it opens files alone: see below",
    "fit": "it compiles: see ingest/test_fit.py",
    "log": "a lake that was made of a file tells of imports: see test_log.py",
    "mcp": "it answers by a protocol: see mcp_server/test_tools.py",
    "compact": "sizes differ: see test_lake_upkeep.py",
    "lake": "it is of lakes alone: see test_lake_upkeep.py",
}


@pytest.fixture(scope="module")
def both(history, tmp_path_factory):
    """The ten nights as a file and as a lake, with names of one length. Only read them.

    A prune that is refused opens them to write: it would wait for a test that has `history` open.
    """
    folder = tmp_path_factory.mktemp("both")
    shutil.copy(history, folder / "file")
    return folder / "file", lake_of(history, folder / "lake")


@pytest.fixture
def own_lake(both, tmp_path):
    """A copy of the lake, to write to."""
    return shutil.copytree(both[1], tmp_path / "lake")


def said(arguments, db, out):
    """What a command says of a warehouse: status, output and messages, without its name."""
    out.mkdir()
    command = [argument.format(out=out) for argument in arguments]
    done = CliRunner().invoke(build_app(), [*command, "--db", str(db)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    texts = (done.stdout, done.stderr)
    shown = (text.replace(str(db), "DB").replace(str(out), "OUT") for text in texts)
    # The parts of pages are numbered through the process: of them their sizes are told.
    files = {file.name: file.read_bytes() for file in out.iterdir() if file.suffix != ".html"}
    return done.exit_code, *shown, files


@pytest.mark.scheduled
def test_every_command_says_the_same(both, tmp_path):
    """The environment may name the warehouse too."""
    file, lake = both
    asked = {tuple(command.split()): status for command, status in READING.items()}
    for statement, form in STATEMENTS.items():
        options = ("--format", form) if form else ()
        asked["sql", statement, *options] = 0 if form else 2
    failures = []
    for number, (arguments, status) in enumerate(asked.items()):
        of_lake = said(arguments, lake, tmp_path / f"a{number}")
        of_file = said(arguments, file, tmp_path / f"b{number}")
        if of_lake[0] != status or of_lake != of_file:
            failures.append((arguments, of_lake[:3], of_file[:3]))
    assert failures == []
    # Rows are counted in a lake, and estimated in a file.
    tables = [
        sorted((row["table"], row["holds"]) for row in json.loads(text))
        for text in (said(["tables", "--format", "json"], db, tmp_path / db.name)[1] for db in both)
    ]
    assert tables[0] == tables[1] != []
    named = run_memhouse("peaks", env={"MEMHOUSE_DB": str(lake)})
    assert named.stdout == run_memhouse("peaks", "--db", file).stdout != ""
    compared = {command.split()[0] for command in READING} | {"oom", "verify", "report"}
    assert compared | WRITING | NOT_COMPARED.keys() == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.scheduled
def test_a_run_whose_memory_ran_out_is_told_verified_and_reported_alike(tmp_path):
    file = tmp_path / "oom.duckdb"
    fill(file, DUMPS / "tpu/llama7b-oom-v5e", *sorted((DUMPS.parent / "oom").glob("*args*")))
    lake = lake_of(file, tmp_path / "lake")
    runs = [row["run"] for row in memhouse.open(lake).runs().arrow().to_pylist()]
    asked = [
        ["oom"],
        *(["oom", run] for run in runs),
        ["verify"],
        ["report", "--history", "-o", "{out}/x.html"],
    ]
    told = [
        [said(args, db, tmp_path / f"{db.name}{n}") for n, args in enumerate(asked)]
        for db in (lake, file)
    ]
    assert told[0] == told[1]
    assert [status for status, *_ in told[0]] == [0] * len(asked)


# --- commands that write --------------------------------------------------------------------

CHANGES = {
    "check --run 2026-10-03 --max-growth 0% --accept wanted": 0,
    f"ingest {DUMPS / 'seeds'} --run new --at 2026-11-01 --label branch=main": 0,
    f"ingest {DUMPS / 'seeds'} --run new": 0,
    f"ingest {DUMPS / 'cpu/jax-0.9.0'} --run new": 2,
    f"ingest {DUMPS / 'cpu/jax-0.9.0'} --run new --replace --at 2026-11-02": 0,
    f"label {NIGHT} branch=pull/7": 0,
    "label 2026-10-06 jax=0.9": 0,
    "prune --keep 1d": 0,
    "prune 2026-10-01 2026-10-04": 0,
    "prune --keep 0d": 0,
}
CHANGED = (
    "SELECT * EXCLUDE (ingested_at) FROM runs ORDER BY ALL",
    "SELECT * FROM run_labels ORDER BY ALL",
    "SELECT * FROM dumps ORDER BY ALL",
    "SELECT * EXCLUDE (accepted_at) FROM accepted_changes ORDER BY ALL",
    "SELECT * FROM history ORDER BY ALL",
    "SELECT * FROM gone ORDER BY ALL",
    "SELECT * FROM lineages ORDER BY ALL",
    "SELECT * FROM trends ORDER BY ALL",
)


@pytest.mark.slow
@pytest.mark.scheduled
def test_every_command_changes_the_same_rows(own, own_lake, tmp_path):
    seen = set()
    for number, (command, status) in enumerate(CHANGES.items()):
        arguments = command.split()
        of_lake = said(arguments, own_lake, tmp_path / f"a{number}")
        of_file = said(arguments, own, tmp_path / f"b{number}")
        assert of_lake[0] == of_file[0] == status, (command, of_lake[:3], of_file[:3])
        assert timeless(of_lake[2]) == timeless(of_file[2])
        if number % 2:
            continue
        with memhouse.open(own_lake) as lake, memhouse.open(own) as file:
            for query in CHANGED:
                rows = lake.sql(query).arrow()
                assert rows.equals(file.sql(query).arrow()), (command, query)
                seen |= {query} if rows.num_rows else set()
    assert seen == set(CHANGED)


def timeless(text):
    """The messages, without how long it took and what compaction gained."""
    lines = (line for line in text.splitlines() if " before, " not in line)
    return [line.rpartition(" in ")[0] or line for line in lines]


def test_sql_changes_no_lake(own_lake):
    """Ingest asks the tables in memory which modules are stored."""
    assert run_memhouse("sql", "--write", "DELETE FROM runs", "--db", own_lake).returncode == 2
    with memhouse.open(own_lake) as warehouse:
        for statement in (
            "DELETE FROM runs",
            "DROP TABLE history",
            "DROP VIEW peaks",
            "CREATE TABLE x (a INT)",
        ):
            with pytest.raises(QueryError):
                warehouse.sql(statement, write=True)
            with pytest.raises(QueryError):
                warehouse.sql(statement)
        assert len(warehouse.runs()) == 10


def test_the_shell_asks_for_a_file(both):
    lake = both[1]
    done = run_memhouse("shell", "--db", lake)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(lake) in done.stderr
    assert "memhouse lake export" in done.stderr


def test_a_command_is_recorded_into_a_lake(tmp_path):
    lake = memhouse.lake.init(tmp_path / "lake")
    command: list[str | Path] = [sys.executable, COMPILER, "cpu/jax-0.10.2/module_0000*"]
    done = run_memhouse("record", "--db", lake, "--run", "A", "--", *command)
    assert done.returncode == 0, done.stderr
    modules = "SELECT run_id, module_name FROM dumps"
    assert memhouse.open(lake).sql(modules).arrow().to_pylist() == [
        {"run_id": "A", "module_name": "jit_convert_element_type"}
    ]
    # What is wrong is told before the command runs.
    done = run_memhouse("record", "--db", lake, "--run", "A", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert "run 'A'" in done.stderr


def test_a_folder_that_is_no_lake_is_told(tmp_path):
    (tmp_path / "there").mkdir()
    for place in (f"{tmp_path}/there", f"{tmp_path}/absent/"):
        for command in (["runs"], ["ingest", DUMPS / "seeds"]):
            done = run_memhouse(*command, "--db", place)
            assert done.returncode == 1
            assert f"memhouse lake init {place}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_session_sees_the_lake_as_it_was_opened(own_lake, nights):
    with memhouse.open(own_lake, read_only=True) as reader:
        assert len(reader.runs()) == 10
        with memhouse.open(own_lake) as writer:
            writer.ingest(nights / NIGHT / "llama-cpu", run="more")
            assert len(writer.runs()) == 11
        assert len(reader.runs()) == 10
    with memhouse.open(own_lake, read_only=True) as reader:
        assert len(reader.runs()) == 11
