"""The rules of the house: which way imports run, and what the wheel holds."""

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("schema", "ingest", "queries", "cli", "mcp_server", "pytest_plugin")
# What each room may import, besides itself.
MAY_IMPORT = {
    "schema": set(),
    "ingest": {"schema"},
    "queries": {"schema"},
    "": {"schema", "ingest", "queries"},
    "cli": {"", "schema", "ingest", "queries", "mcp_server"},
    "mcp_server": {"", "schema", "queries"},
    "pytest_plugin": {"", "schema", "queries"},
}
# The same within ingest: data flows from sources through readers and parts to the model.
MAY_IMPORT_WITHIN_INGEST = {
    # How full memory is, and how large a shape, is asked of what is stored as well.
    "model": {"address_space", "array_shapes"},
    "readers": {"model", "address_space", "array_shapes"},
    # Dumps may lie in the same object stores as lakes.
    "sources": {"readers", "model", "lake"},
    # It is given the store, as the pipeline is.
    "recording": {"sources", "readers", "model", "stores", "lake"},
}


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


def test_imports_run_down():
    wrong = [
        f"{module} imports {imported}"
        for module in files()
        for imported in imports(module)
        # Who only wants to know the version asks the package itself.
        if imported != "_version"
        and room(imported) not in {room(module), *MAY_IMPORT[room(module)]}
    ]
    assert wrong == []


def test_within_ingest_imports_run_towards_the_parts():
    wrong = []
    for module in files():
        if module.count(".") < 2 or not module.startswith("ingest."):
            continue
        here = module.split(".")[1]
        for imported in imports(module):
            there = imported.split(".")[1] if imported.count(".") >= 2 else None
            if there not in MAY_IMPORT_WITHIN_INGEST[here] | {here, None}:
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_no_import_runs_in_a_circle():
    graph = {module: set(imports(module)) - {module} for module in files()}
    # A package's own file imports what is in it.
    graph = {m: {i for i in found if not m.startswith(f"{i}.")} for m, found in graph.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_typer_is_imported_in_cli_alone():
    for module, file in files().items():
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
        }
        assert "typer" not in names or room(module) == "cli", module


def test_every_package_is_listed():
    """A folder that is not listed is missing from the wheel: see `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(project["tool"]["setuptools"]["packages"])
    there = {
        ".".join(["memhouse", *folder.relative_to(ROOT).parts])
        for room in ROOMS
        for folder in {file.parent for file in (ROOT / room).rglob("*.py")}
    }
    assert listed == there | {"memhouse"}


def missing_from(wheel):
    """The package's files that a wheel does not hold."""
    with zipfile.ZipFile(wheel) as packed:
        held = set(packed.namelist())
    kinds = (".py", ".sql", ".json", ".typed", ".html", ".css", ".js", ".zst")
    root = [*ROOT.glob("*.py"), ROOT / "py.typed"]
    there = {
        f"memhouse/{file.relative_to(ROOT).as_posix()}"
        for place in [*root, *(ROOT / room for room in ROOMS)]
        for file in ([place] if place.is_file() else place.rglob("*"))
        if file.suffix in kinds or file.name == "py.typed"
    }
    scripts = {f"scripts/{script.name}" for script in (ROOT / "scripts").iterdir()}
    return there - held | {s for s in scripts if not any(name.endswith(f"/{s}") for name in held)}


@pytest.fixture
def checkout(tmp_path):
    """A copy of the checkout, to build in."""
    folder = tmp_path / "checkout/memhouse"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "data", "_version.py", "*.egg-info", ".*_cache"
    )
    shutil.copytree(ROOT, folder, ignore=ignored)
    return folder


def build(folder, to):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", to, folder]
    subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=300)
    (wheel,) = to.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_is_whole(checkout, tmp_path):
    assert missing_from(build(checkout, tmp_path)) == set()


@pytest.mark.slow
def test_a_wheel_without_a_package_is_noticed(checkout, tmp_path):
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text().replace('    "memhouse.ingest.readers",\n', ""))
    assert "memhouse/ingest/readers/lines.py" in missing_from(build(checkout, tmp_path))
