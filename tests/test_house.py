"""The rules of the house: which way imports run, and what is packed for a release."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("xla", "schema", "ingest", "compile", "queries", "advice", "oom", "report"),
    *("cli", "mcp_server", "pytest_plugin"),
)
# What each room may import, besides itself.
_ANSWERS = {"queries", "advice", "oom", "report", "compile"}
MAY_IMPORT = {
    "xla": set(),
    "schema": {"xla"},
    "ingest": {"xla", "schema"},
    **{room: {"xla", "schema", "ingest", *_ANSWERS} for room in _ANSWERS},
    "": {"schema", "ingest", *_ANSWERS},
    "cli": {"", "schema", "ingest", *_ANSWERS, "mcp_server"},
    "mcp_server": {"", "schema", *_ANSWERS},
    "pytest_plugin": {"", "schema", *_ANSWERS},
}
# The same within ingest: readers know no paths.
MAY_IMPORT_WITHIN_INGEST = {"readers": set(), "sources": {"readers"}}


@cache
def files():
    """Every Python file of the package by its module's name."""
    found = [*ROOT.glob("*.py"), *(f for room in ROOMS for f in (ROOT / room).rglob("*.py"))]
    return {name_of(file): file for file in found}


def name_of(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(module):
    """The modules of the package that a module imports, for types alone or not."""
    file = files()[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        parts = package.split(".") if package else []
        base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
        for alias in node.names:
            inner = ".".join(filter(None, [base, alias.name]))
            yield inner if inner in files() else base


def room(module):
    first = module.split(".")[0]
    return first if first in ROOMS else ""


def wrong_imports():
    for module in files():
        here = module.split(".")
        for imported in imports(module):
            there = imported.split(".")
            # Who only wants to know the version asks the package itself.
            down = {room(module), *MAY_IMPORT[room(module)]}
            if imported != "_version" and room(imported) not in down:
                yield f"{module} imports {imported}"
            if here[0] == "ingest" and len(here) > 2:
                towards_parts = MAY_IMPORT_WITHIN_INGEST[here[1]] | {here[1]}
                if len(there) > 2 and there[1] not in towards_parts:
                    yield f"{module} imports {imported}"


def test_imports_run_down_and_in_no_circle():
    assert list(wrong_imports()) == []
    graph = {module: set(imports(module)) - {module} for module in files()}
    # The commands are imported by name.
    graph["cli.app"] |= {module for module in files() if module.startswith("cli.commands.")}
    # A package's own file imports what is in it.
    graph = {m: {i for i in found if not m.startswith(f"{i}.")} for m, found in graph.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_every_package_is_listed_and_typer_is_imported_in_cli_alone():
    """A folder that is not listed is missing from the wheel: see `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(project["tool"]["setuptools"]["packages"])
    there = {
        ".".join(["memhouse", *file.relative_to(ROOT).parts[:-1]]) for file in files().values()
    }
    assert listed == there
    of_typer = re.compile(r"^\s*(import|from) typer\b", re.MULTILINE)
    typed = {room(module) for module, file in files().items() if of_typer.search(file.read_text())}
    assert typed == {"cli"}


def test_the_engine_is_plain_loops():
    """XLA's rules and the readers use neither numpy nor pyarrow."""
    plain = [
        (module, file)
        for module, file in files().items()
        if room(module) == "xla" or module.startswith("ingest.readers")
    ]
    assert len(plain) > 60
    names = {
        (module, name.split(".")[0])
        for module, file in plain
        for node in ast.walk(ast.parse(file.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    assert not {(module, name) for module, name in names if name in ("numpy", "pyarrow", "pandas")}


def test_files_are_read_and_written_as_utf8():
    """Without an encoding Python takes that of the locale, which may be ASCII."""
    for module, file in files().items():
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            arguments = {keyword.arg for keyword in node.keywords}
            is_file = node.func.attr in ("read_text", "write_text")
            # `open` with the mode "w" or "r", and not "rb" or the flags of `os.open`.
            is_open = node.func.attr == "open" and any(
                isinstance(mode, ast.Constant) and mode.value in ("r", "w", "a", "x")
                for mode in node.args
            )
            assert "encoding" in arguments or not (is_file or is_open), f"{module}:{node.lineno}"


def to_be_packed():
    """Every file that the package needs, relative to the checkout."""
    kinds = (".py", ".sql", ".txt", ".json", ".typed", ".html", ".css", ".js", ".zst")
    root = [*ROOT.glob("*.py"), ROOT / "py.typed"]
    return {
        file.relative_to(ROOT)
        for place in [*root, *(ROOT / room for room in ROOMS)]
        for file in ([place] if place.is_file() else place.rglob("*"))
        if file.suffix in kinds or file.name == "py.typed"
    }


def test_every_file_that_the_package_needs_is_one_that_pyproject_packs():
    """What a wheel would lack; that a wheel is what this says is tried below."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = set()
    for name in tool["packages"]:
        folder = ROOT.joinpath(*name.split(".")[1:])
        patterns = ["*.py", *tool["package-data"].get(name, ())]
        packed |= {file.relative_to(ROOT) for each in patterns for file in folder.glob(each)}
    assert to_be_packed() - packed == set()


def missing_from(wheel):
    """The package's files that a wheel does not hold."""
    with zipfile.ZipFile(wheel) as packed:
        held = set(packed.namelist())
    return {f"memhouse/{file.as_posix()}" for file in to_be_packed()} - held


@pytest.mark.slow
def test_the_wheel_is_whole_and_the_sdist_has_the_tag_and_what_the_wheel_takes(tmp_path):
    """Tests, docs and dumps stay in the repository: they are most of its bytes."""
    copy = tmp_path / "memhouse"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "_version.py", "*.egg-info", ".*_cache", "data"
    )
    shutil.copytree(ROOT, copy, ignore=ignored)
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    for words in (
        ("init", "--quiet"),
        ("add", "--all"),
        (*who, "commit", "--quiet", "--message", "everything"),
        ("tag", "v9.8.7"),
    ):
        subprocess.run(["git", *words], cwd=copy, check=True, timeout=60)
    built = tmp_path / "dist"
    subprocess.run(
        [copy / ".ci/package", built],
        env=os.environ | {"PYTHON": sys.executable},
        check=True,
        capture_output=True,
        timeout=300,
    )
    wheel, sdist = sorted(built.iterdir())
    assert wheel.name == "memhouse-9.8.7-py3-none-any.whl"
    assert sdist.name == "memhouse-9.8.7.tar.gz"
    assert missing_from(wheel) == set()
    with tarfile.open(sdist) as packed:
        names = [name.partition("/")[2] for name in packed.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE", "_version.py", "py.typed"} <= set(names)
    left_out = ("tests", "benchmarks", "docs", ".ci", ".github", ".git_archival.txt")
    assert [name for name in names if name.startswith(left_out)] == []
    assert sdist.stat().st_size < 1250 << 10
