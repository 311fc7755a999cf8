"""Commands that memhouse suggests: whatever a name holds, it is one word of them."""

import ast
import re
import shlex
import sys
from pathlib import Path

import memhouse
from memhouse.cli.app import COMMANDS
from memhouse.schema.readable import command

from ..support.command import run_memhouse
from ..support.dumps import DATA, DUMPS
from ..support.made_runs import make_run

PACKAGE = Path(memhouse.__file__).parent
NAMES = ["x;$(touch pwned)`touch pwned`'\" && touch pwned # |", "-x --write", "a b", "", "~!*?\\"]
HOSTILE = NAMES[0]


def words(text):
    """The words after each place where a command begins, as far as a shell takes them for words."""
    found = []
    for begin in re.finditer(r"memhouse [a-z]|--branch ", text):
        rest = shlex.shlex(text[begin.start() :], posix=True, punctuation_chars=False)
        rest.whitespace_split, rest.commenters = True, ""
        try:
            found += [word.strip("`,\N{ZERO WIDTH SPACE}") for word in rest]
        except ValueError:
            # What follows the command is prose, and may have a single '.
            found += rest.token.split()
    return found


def test_a_name_is_one_word():
    for name in NAMES:
        typed = command("diff", "--by", name, names=[name, "b"])
        found = [word for word in shlex.split(typed) if word != "--"]
        assert found == ["memhouse", "diff", "--by", name, name, "b"]
    assert "\n" not in command(names=["a\nb"])


def test_no_command_is_put_together_otherwise():
    """A value within a command comes from `command`: seen in the code, for every suggestion."""
    commands = "|".join(COMMANDS)
    with_value = re.compile(rf"memhouse ({commands})( [^`:;,\0]*)? \S*\0")
    wrong = []
    folders = [folder for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()]
    for path in [*PACKAGE.glob("*.py"), *(file for it in folders for file in it.rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.JoinedStr):
                continue
            said = "".join(
                part.value if isinstance(part, ast.Constant) else "\0" for part in node.values
            )
            if with_value.search(said):
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert wrong == []


def test_the_commands_of_check(db):
    make_run(db, HOSTILE, {"w/jit f": 100}, day=1)
    make_run(db, f"{HOSTILE} 2", {"w/jit f": 200}, day=2)
    for output in ("table", "markdown", "github"):
        said = run_memhouse(
            "check", "--db", db, "--run", f"{HOSTILE} 2", "--format", output, "--max-growth", "1%"
        )
        assert said.returncode == 1
        (line,) = (line for line in said.stdout.splitlines() if "memhouse diff " in line)
        typed = line[line.index("memhouse") :].rstrip("` ")
        assert shlex.split(typed) == ["memhouse", "diff", HOSTILE, f"{HOSTILE} 2"]


def test_the_commands_of_branches(db):
    make_run(db, "1", {"w/jit f": 100}, day=1)
    make_run(db, "2", {"w/jit f": 100}, day=2, branch=HOSTILE)
    said = run_memhouse("trends", "--db", db, "--branch", "")
    assert HOSTILE in words(said.stderr)


def test_the_commands_of_an_out_of_memory(tmp_path, db):
    log = tmp_path / f"{HOSTILE[:8]}.log"
    log.write_bytes((DATA / "oom/jax0.5.3-args.txt").read_bytes())
    assert str(log) in words(run_memhouse("doctor", log).stderr)
    said = run_memhouse("ingest", "--db", db, DUMPS / "tpu/llama7b-oom-v5e", "--run", HOSTILE)
    assert HOSTILE in words(said.stderr)
    assert words(run_memhouse("oom", HOSTILE, "--db", db).stdout).count(HOSTILE) >= 2


def test_the_command_that_ingests_what_was_recorded(tmp_path):
    """The warehouse is broken while the command runs."""
    compiler = PACKAGE / "tests/support/fake_compiler.py"
    script = '"$0" "$1" "cpu/jax-0.10.2/module_0000*" && echo "no warehouse" > "a;b"'
    said = run_memhouse(
        *("record", "--db", "a;b", "--run", HOSTILE, "--keep", "kept", "--"),
        *("/bin/sh", "-c", script, sys.executable, compiler),
        cwd=tmp_path,
    )
    assert said.returncode == 1
    assert "memhouse ingest" in said.stderr
    assert {HOSTILE, "a;b"} <= set(words(said.stderr))
