"""Names from dumps are data: never SQL, never markup, never what moves a terminal's cursor."""

import csv
import io
import json
import re
import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..support.command import run_memhouse
from ..support.console import on_terminal
from ..support.dumps import DUMPS
from ..support.warehouse import everything, fill, rows

# File names may hold anything but a slash and a zero byte.
EVIL = [
    "'; DROP TABLE modules; --",
    '"; DELETE FROM runs; --',
    "[red]x[/red] [/] [link=evil]",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "two\nlines\r\tand a tab",
    "back\\slash \\n \\' %s %d {x} $1 ?",
    ":smile: `a` |b| <b>&amp;",
    "=1+1",
    "名前 ünï ‮reversed",
]
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def module_name(name):
    """What a file's name can say: XLA's have no line breaks."""
    return name.replace("/", "").replace("\n", " ")


def told_module_name(name):
    """What is told of that: a return is no name's either."""
    return module_name(name).replace("\r", "\\r")


def workload_name(name):
    """What a folder's name says: its line ends are told."""
    return name.replace("/", "").replace("\n", "\\n").replace("\r", "\\r")


def evil_text(text, number):
    """A seed's text whose module, instructions, scopes and files are called like that."""
    name = EVIL[number].replace('"', "'").replace("\n", " ").replace("\\", "/")
    return re.sub(r'op_name="[^"]*"', lambda _: f'op_name="jit(f)/{name}"', text)


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A run, its labels, workloads, modules and operations all called badly: warehouse, folder."""
    folder = tmp_path_factory.mktemp("evil") / EVIL[0].replace("/", "")
    flash = DUMPS / "tpu/flash-v5e"
    for number, name in enumerate(EVIL):
        workload = folder / name.replace("/", "")
        workload.mkdir(parents=True)
        for path in flash.iterdir():
            stem = path.name.replace("jit__lambda", module_name(name))
            (workload / stem).write_text(evil_text(path.read_text(), number))
    db = folder.parent / "memhouse.duckdb"
    for run in EVIL:
        (summary,) = fill(db, folder, run_id=run, labels={run: run})
        assert summary.failed == 0
    return db, folder


def ask(night, *args):
    """The command in this process; it ends as it should."""
    done = run_memhouse(*args, "--db", night[0])
    assert done.returncode in (0, 1), done.stderr
    return done


COMMANDS = {
    "runs": ["runs"],
    "modules": ["modules"],
    "peaks": ["peaks"],
    "fragmentation": ["fragmentation"],
    "trends": ["trends"],
    "diff": ["diff", EVIL[1], EVIL[2]],
    "owners": ["owners", "=1+1"],
    "buffers": ["buffers", "=1+1"],
    "saved": ["saved", "=1+1"],
    "donations": ["donations", "=1+1"],
    "timeline": ["timeline", "=1+1"],
    "verify": ["verify"],
    "tables": ["tables"],
    "sql": ["sql", "SELECT * FROM dumps INNER JOIN run_labels USING (run_id) ORDER BY ALL"],
    "op_names": [
        "sql",
        "SELECT DISTINCT op_name, instruction, source_file FROM instructions ORDER BY ALL",
    ],
}


IN_ALL_FORMATS = ("runs", "modules", "diff", "owners", "sql", "op_names")


@pytest.fixture(scope="module")
def answers(night):
    """What each command shows, by its name and the format."""
    return {
        (name, output): ask(night, *command, "--format", output)
        for name, command in COMMANDS.items()
        for output in ("table", *(("markdown", "csv", "json") if name in IN_ALL_FORMATS else ()))
    }


def test_what_is_shown_moves_no_cursor(answers):
    failures = [
        key
        for key, done in answers.items()
        if key[1] in ("table", "markdown") and FORBIDDEN.search(done.stdout + done.stderr)
    ]
    assert failures == []


def test_names_are_no_markup(answers):
    for command in ("runs", "modules", "trends", "sql"):
        shown = answers[command, "table"].stdout
        assert "[red]x[/red]" in shown or "[red]x[red]" in shown
        assert ":smile:" in shown


@pytest.mark.slow
def test_a_terminal_is_safe_too(night, tmp_path):
    db = shlex.quote(str(night[0]))
    for command in ("runs", "peaks", "trends"):
        shown = on_terminal(f"memhouse {command} --db {db}", tmp_path, columns=200)
        # Our own styles apart, all are shown as text.
        assert not FORBIDDEN.search(re.sub(r"\x1b\[[012]?m", "", shown).replace("\r", ""))


def test_csv_and_json_are_exact(answers):
    told = {f"{workload_name(name)}/{told_module_name(name)}" for name in EVIL}
    objects = json.loads(answers["diff", "json"].stdout)
    assert {record["module"] for record in objects} == told
    for command in {*IN_ALL_FORMATS} - {"diff"}:
        text = answers[command, "csv"].stdout
        heading, *lines = csv.reader(io.StringIO(text, newline=""))
        objects = json.loads(answers[command, "json"].stdout)
        assert len(lines) == len(objects) > 0, command
        for line, record in zip(lines, objects, strict=True):
            for name, cell in zip(heading, line, strict=True):
                if isinstance(record[name], str):
                    assert cell == record[name], command


def test_all_names_come_back_as_they_were(night, answers):
    found = json.loads(answers["runs", "json"].stdout)
    assert {row["run"] for row in found} == set(EVIL)
    found = json.loads(ask(night, "modules", "--run", EVIL[3], "-f", "json").stdout)
    assert {row["workload"] for row in found} == set(map(workload_name, EVIL))
    assert {row["module"] for row in found} == set(map(told_module_name, EVIL))


def test_markdown_is_a_table_of_text(answers):
    shown = answers["runs", "markdown"].stdout
    assert r"\|b\| \<b>" in shown
    cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in shown.splitlines()}
    assert len(cells) == 1


READERS = {
    "csv": lambda file: list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline=""))),
    "json": lambda file: json.loads(file.read_text()),
    "parquet": lambda file: pq.read_table(file).to_pylist(),
    "arrow": lambda file: pa.ipc.open_file(file).read_all().to_pylist(),
}


def test_exports_are_exact(night, tmp_path):
    for (ending, read), run in zip(READERS.items(), EVIL[:4], strict=True):
        file = tmp_path / f"it's; [red] {EVIL[0][:8]}.{ending}"
        workload = workload_name(run)
        ask(night, "export", "dumps", file, "--workload", workload)
        found = {(row["run_id"], row["workload"]) for row in read(file)}
        assert found == {(other, workload) for other in EVIL}, ending


def test_names_given_are_data(night):
    db, _ = night
    before = {table: len(found) for table, found in everything(db).items()}
    for number, name in enumerate(EVIL):
        workload = workload_name(name)
        other = EVIL[number - 1]
        commands = [
            ["modules", "--run", name],
            ["peaks", "--run", name, "--workload", workload],
            ["trends", "--workload", workload],
            ["owners", workload, "--run", name],
            ["diff", other, name, "--workload", workload],
            ["check", "--run", name, "--baseline", other],
        ]
        # All of them for two that are SQL, for the others one or two.
        for command in commands if number < 2 else commands[number % 6 :: 6]:
            done = ask(night, *command)
            assert done.stdout, command
            assert not FORBIDDEN.search(done.stdout + done.stderr), command
        if number < 2:
            assert run_memhouse("tables", name, "--db", db).returncode == 2
            assert run_memhouse("export", name, "x.csv", "--db", db).returncode == 2
    assert {table: len(found) for table, found in everything(db).items()} == before


def test_what_is_written_under_a_bad_name(night, tmp_path):
    db = shutil.copy(night[0], tmp_path / "it's; DROP TABLE runs; --.duckdb")
    limits = tmp_path / "limits.toml"
    limits.write_text('max_bytes = "1KiB"\n')
    accept = ["check", "--run", EVIL[0], "--limits", limits, "--accept", EVIL[1]]
    assert run_memhouse(*accept, "--db", db).returncode == 0
    found = rows(
        db, "SELECT DISTINCT run_id, reason FROM accepted_changes JOIN dumps USING (dump_id)"
    )
    assert found == [(EVIL[0], EVIL[1])]
    assert run_memhouse("prune", "--db", db, "--", EVIL[0]).returncode == 0
    assert {run for (run,) in rows(db, "SELECT run_id FROM runs")} == set(EVIL[1:])
    assert run_memhouse("verify", "--db", db).returncode == 0
