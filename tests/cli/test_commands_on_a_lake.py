"""Every command says the same of a lake as of the DuckDB file of the same dumps."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memhouse
import memhouse.lake
from memhouse.cli.app import COMMANDS, app_for
from memhouse.schema.errors import QueryError

from ..support.command import run_memhouse
from ..support.dumps import DUMPS
from ..support.lakes import lake_of
from ..support.warehouse import fill

NIGHT = "2026-10-05"
COMPILER = Path(__file__).parents[1] / "support/fake_compiler.py"
# Of the ten nights.
READING = [
    "runs",
    "runs --format json",
    "modules",
    f"modules --run {NIGHT} --format csv",
    "peaks",
    "peaks --all --format json",
    "owners llama-v5e",
    "owners llama-v5e --by scope --format csv",
    "owners resnet-h100 --callers 2",
    "buffers decode-v5e --format json",
    "buffers decode-v5e --run 2026-10-02 --callers 1",
    "donations llama-v5e",
    "advise llama-v5e --run 2026-10-08",
    "advise llama-v5e --save 1GiB --format json",
    "kernels",
    "timeline llama-v5e",
    "fragmentation",
    "trends",
    "trends --format json",
    "trends --workload llama-v5e --figure total",
    "since llama-v5e",
    "since decode-v5e --figure temp",
    "diff 2026-10-01 2026-10-10",
    "diff 2026-10-01 2026-10-10 --by scope",
    "check",
    f"check {NIGHT} --max-growth 1%",
    "check 2026-10-08 --best --max-growth 1MiB",
    "views",
    "views peaks",
    # Of tables with shapes, a file also has the two columns that store them.
    "tables live_ranges",
    "tables runs --format json",
    pytest.param("verify", marks=pytest.mark.slow),
    "report {out}/module.html llama-v5e",
    "report {out}/history.html --history",
    "export trends {out}/trends.csv",
    "export trends {out}/wide.csv --wide",
    "export live_ranges {out}/live_ranges.parquet",
    "export peaks {out}/peaks.json --where peak_bytes>1000",
    "export llama-v5e {out}/llama.pftrace",
    "runs --wait 5",
    "owners no-such-module",
    "diff 2026-10-01 no-such-run",
    "prune no-such-run",
    "sql SELEC",
]
# Statements have blanks.
STATEMENTS = [
    "SELECT * FROM trends ORDER BY ALL",
    'SELECT module_id, COUNT(*), SUM(size_bytes) FROM "values" GROUP BY 1 ORDER BY 1',
    "SELECT shape FROM values ORDER BY 1 LIMIT 5",
    "SELECT run_at, ingested_at FROM runs ORDER BY run_seq",
    "SELECT * FROM no_such_table",
    "SELECT no_such_column FROM runs",
    "SET threads = 1",
]
# What these change is compared below: as rows, since they note the time.
WRITING = {"ingest", "record", "label", "prune"}
NOT_COMPARED = {
    "demo": "it makes a file of its own",
    "doctor": "it opens no warehouse",
    "shell": "it opens files alone: see below",
    "log": "a lake that was made of a file tells of imports: see test_log.py",
    "mcp": "it answers by a protocol: see mcp_server/test_tools.py",
    "compact": "sizes differ: see test_lake_upkeep.py",
    "lake": "it is of lakes alone: see test_lake_upkeep.py",
}


@pytest.fixture(scope="module")
def both(history, tmp_path_factory):
    """The ten nights as a file and as a lake. Only read them."""
    return history, lake_of(history, tmp_path_factory.mktemp("lakes") / "lake")


def said(arguments, db, out):
    """What a command says of a warehouse: status, output and messages, without its name."""
    out.mkdir()
    command = [argument.format(out=out) for argument in arguments]
    done = CliRunner().invoke(app_for(command), [*command, "--db", str(db)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    texts = (done.stdout, done.stderr)
    shown = (text.replace(str(db), "DB").replace(str(out), "OUT") for text in texts)
    return done.exit_code, *shown, {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.mark.parametrize("command", READING)
def test_a_command_says_the_same(both, tmp_path, command):
    file, lake = both
    arguments = command.split()
    assert said(arguments, lake, tmp_path / "a") == said(arguments, file, tmp_path / "b")


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
def test_a_statement_says_the_same(both, tmp_path, statement, form):
    file, lake = both
    arguments = ["sql", statement, "--format", form]
    assert said(arguments, lake, tmp_path / "a") == said(arguments, file, tmp_path / "b")


def test_every_command_is_compared():
    compared = {command.split()[0] for command in READING if isinstance(command, str)}
    compared |= {"oom", "verify", "tables"}
    assert compared | WRITING | NOT_COMPARED.keys() == set(COMMANDS)


def test_the_tables_are_the_same(both, tmp_path):
    """Their rows are counted in a lake, but estimated in a file."""
    listed = [
        sorted((row["table"], row["holds"]) for row in json.loads(text))
        for text in (
            said(["tables", "--format", "json"], db, tmp_path / name)[1]
            for db, name in zip(both, "ab", strict=True)
        )
    ]
    assert listed[0] == listed[1] != []


# --- commands that write --------------------------------------------------------------------


@pytest.fixture
def own_lake(both, tmp_path):
    """A copy of the lake, to write to."""
    return shutil.copytree(both[1], tmp_path / "lake")


CHANGES = {
    "ingest": [f"ingest {DUMPS / 'seeds'} --at 2026-11-01 --label branch=main"],
    "ingest again": [f"ingest {DUMPS / 'seeds'} --at 2026-11-01", f"ingest {DUMPS / 'seeds'}"],
    "ingest --replace": [
        f"ingest {DUMPS / 'seeds'} --run night --at 2026-11-01",
        f"ingest {DUMPS / 'gpu'} --run night --replace --at 2026-11-02",
    ],
    "label": ["label 2026-10-05 --label branch=pull/7", "label 2026-10-06 --label jax=0.9"],
    "prune": ["prune 2026-10-01 2026-10-04"],
    "prune --keep": ["prune --keep 1d"],
    "check --accept": ["check 2026-10-05 --max-growth 0% --accept wanted"],
}


@pytest.mark.parametrize("commands", CHANGES.values(), ids=CHANGES)
def test_a_command_changes_the_same_rows(own, own_lake, tmp_path, commands):
    for number, command in enumerate(commands):
        arguments = command.split()
        a = said(arguments, own_lake, tmp_path / f"a{number}")
        b = said(arguments, own, tmp_path / f"b{number}")
        assert (a[0], timeless(a[2])) == (b[0], timeless(b[2]))
    for query in (
        "SELECT * EXCLUDE (ingested_at) FROM runs ORDER BY ALL",
        "SELECT * FROM run_labels ORDER BY ALL",
        "SELECT * FROM dumps ORDER BY ALL",
        "SELECT * EXCLUDE (accepted_at) FROM accepted_changes ORDER BY ALL",
        "SELECT * FROM history ORDER BY ALL",
        "SELECT * FROM gone ORDER BY ALL",
        "SELECT * FROM lineages ORDER BY ALL",
        "SELECT * FROM trends ORDER BY ALL",
    ):
        with memhouse.open(own_lake) as lake, memhouse.open(own) as file:
            assert lake.sql(query).arrow().equals(file.sql(query).arrow()), query


def timeless(text):
    """The messages, without how long it took and what compaction gained."""
    lines = (line for line in text.splitlines() if " before, " not in line)
    return [line.rpartition(" in ")[0] or line for line in lines]


@pytest.mark.slow
def test_a_log_of_memory_that_ran_out(tmp_path):
    logs = DUMPS.parent / "oom"
    file = tmp_path / "oom.duckdb"
    fill(file, DUMPS / "tpu", logs)
    lake = lake_of(file, tmp_path / "lake")
    runs = [row["run"] for row in memhouse.open(lake).runs().arrow().to_pylist()]
    for number, run in enumerate(runs):
        outs = tmp_path / f"a{number}", tmp_path / f"b{number}"
        assert said(["oom", run], lake, outs[0]) == said(["oom", run], file, outs[1])
    assert said(["oom"], lake, tmp_path / "a") == said(["oom"], file, tmp_path / "b")


def test_sql_does_not_write_to_a_lake(own_lake):
    done = run_memhouse("sql", "--write", "DELETE FROM runs", "--db", own_lake)
    assert done.returncode == 2
    assert done.stderr == (
        "error: a lake is not changed by SQL: use ingest, label, prune or check\n"
    )
    assert len(memhouse.open(own_lake).runs()) == 10


def test_the_shell_asks_for_a_file(both):
    lake = both[1]
    done = run_memhouse("shell", "--db", lake)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {lake} is a lake, and the shell opens a file: `memhouse lake export FILE.duckdb` "
        "makes one, and `memhouse sql` asks the lake\n"
    )


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
    assert "run 'A' is there already" in done.stderr


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM runs", "DROP TABLE history", "DROP VIEW peaks", "CREATE TABLE x (a INT)"],
)
def test_a_session_cannot_change_what_writing_relies_on(own_lake, statement):
    """Ingest asks the tables in memory which modules are stored."""
    with memhouse.open(own_lake) as warehouse:
        with pytest.raises(QueryError, match="a lake is not changed by SQL: use ingest, label"):
            warehouse.sql(statement, write=True)
        with pytest.raises(QueryError, match="only one SELECT is answered"):
            warehouse.sql(statement)
        assert len(warehouse.runs()) == 10


def test_the_environment_may_name_the_lake(both):
    file, lake = both
    done = run_memhouse("peaks", env={"MEMHOUSE_DB": str(lake)})
    assert done.stdout == run_memhouse("peaks", "--db", file).stdout != ""


@pytest.mark.parametrize("command", ["runs", "ingest"])
@pytest.mark.parametrize("name", ["there", "absent/"])
def test_a_folder_that_is_no_lake_is_told(tmp_path, command, name):
    (tmp_path / "there").mkdir()
    place = f"{tmp_path}/{name}"
    dumps = [DUMPS / "seeds"] if command == "ingest" else []
    done = run_memhouse(command, *dumps, "--db", place)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {place} is a folder, but no lake: make one with `memhouse lake init {place}`, "
        "or name a file\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_session_sees_the_lake_as_it_was_opened(own_lake, nights):
    with memhouse.open(own_lake, read_only=True) as reader:
        assert len(reader.runs()) == 10
        with memhouse.open(own_lake) as writer:
            writer.ingest(nights / NIGHT, run="more")
            assert len(writer.runs()) == 11
        assert len(reader.runs()) == 10
    with memhouse.open(own_lake, read_only=True) as reader:
        assert len(reader.runs()) == 11
