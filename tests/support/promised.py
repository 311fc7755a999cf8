"""What a release promises by name, read off the code; `docs/versions.md` says what it means.

`make promises` writes it to `tests/promises/promised.json`: with RELEASE=0.2.0 for that release.
Before the first one the upgrade of the schema that makes the tables may still change.
"""

import hashlib
import inspect
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main

import memhouse
from memhouse.cli.app import build_app
from memhouse.queries.catalogue import public_views
from memhouse.queries.questions import OWNERS

from .command import run_memhouse
from .dumps import DATA, DUMPS
from .warehouse import fill

ROOT = Path(__file__).parents[2]
PROMISED = ROOT / "tests/promises/promised.json"
NO_RELEASE = "none yet"
# Names in their order, by the thing that has them, by the kind of thing.
Promises = dict[str, dict[str, list[str]]]
# What Typer adds, and what the warehouse keeps for itself; so does what starts with `_`.
_NOT_PROMISED = {"--install-completion", "--show-completion", "view_set"}
_NIGHTS = ("one", "two")
_MODULE = "jit_mixed"
# A command that prints rows as CSV, with what it needs for them.
PRINTING_ROWS = (
    *("runs", "modules", "peaks", "fragmentation", "kernels", "trends", "verify", "log"),
    "tables",
    "tables runs",
    *(
        f"{name} {_MODULE}"
        for name in ("buffers", "advise", "donations", "timeline", "saved", "since", "passes")
    ),
    *(f"owners {_MODULE} --by {by}" for by in OWNERS),
    *(f"diff one two --by {by}" for by in ("buffer", *OWNERS)),
    "check --run two",
    "label one",
    f"oom {DATA / 'oom/jax0.10.2-temps.txt'}",
)


def promised_by_code(folder: Path) -> Promises:
    """What the code at hand offers; `folder` is for a warehouse."""
    db = folder / "promised.duckdb"
    for night in _NIGHTS:
        fill(db, DUMPS / "cpu/jax-0.9.0", run_id=night)
    columns = json.loads((ROOT / "schema/columns.json").read_text())
    return {
        "tables": {
            # A closed list may get words: see docs/versions.md.
            name: [
                f"{column} {type_.partition('(')[0]}"
                for column, type_ in held.items()
                if column[0] != "_"
            ]
            for name, held in columns.items()
            if name not in _NOT_PROMISED and name[0] != "_"
        },
        "views": {name: list(view.columns) for name, view in public_views().items()},
        "csv": {_shown(command): _header(command, db) for command in PRINTING_ROWS},
        "options": dict(_options()),
        "python": dict(_signatures()),
    }


def upgrades() -> dict[str, list[str]]:
    """The content of each upgrade of the schema, as a hash."""
    files = sorted((ROOT / "schema/upgrades").glob("*.sql"))
    return {file.name: [hashlib.sha256(file.read_bytes()).hexdigest()] for file in files}


def broken(promised: Promises, offered: Promises) -> list[str]:
    """What was promised and is not kept: gone, or in another order."""
    found = []
    for kind, things in promised.items():
        for thing, names in things.items():
            there = offered.get(kind, {}).get(thing, [])
            found += [f"{kind}: {thing}: {name}" for name in names if name not in there]
            kept = [name for name in names if name in there]
            if kept != [name for name in there if name in names]:
                found.append(f"{kind}: {thing}: the order of {', '.join(kept)}")
    return found


def _header(command: str, db: Path) -> list[str]:
    done = run_memhouse(*command.split(), "--db", db, "--format", "csv")
    header, *_ = done.stdout.splitlines() or [""]
    assert "_" in header or "," in header, f"{command} printed no CSV: {done.stderr}"
    return header.split(",")


def _shown(command: str) -> str:
    """The command as it stands in the list: no paths of this machine."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in command.split())


def _options() -> Iterator[tuple[str, list[str]]]:
    yield from _options_of("memhouse", typer.main.get_command(build_app()))


def _options_of(name: str, command: Any) -> Iterator[tuple[str, list[str]]]:
    spelled = {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o[0] == "-"}
    yield name, sorted(spelled - _NOT_PROMISED)
    for inner, of in getattr(command, "commands", {}).items():
        yield from _options_of(f"{name} {inner}", of)


def _signatures() -> Iterator[tuple[str, list[str]]]:
    yield "memhouse", sorted(memhouse.__all__)
    for name in memhouse.__all__:
        thing = getattr(memhouse, name)
        if inspect.isfunction(thing):
            yield f"memhouse.{name}", _parameters(thing)
    for name, method in inspect.getmembers(memhouse.Warehouse, inspect.isfunction):
        if not name.startswith("_"):
            yield f"Warehouse.{name}", _parameters(method)


def _parameters(function: Any) -> list[str]:
    """Parameters in their order; of those that are named the order does not matter."""
    taken = inspect.signature(function).parameters.values()
    named = sorted(p.name for p in taken if p.kind is p.KEYWORD_ONLY)
    return [*(str(p).split(":")[0] for p in taken if p.kind is not p.KEYWORD_ONLY), *named]


def _write(release: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        promises: Mapping[str, Any] = promised_by_code(Path(folder))
    held = {} if release == NO_RELEASE else upgrades()
    kinds = {"release": release, **promises, "upgrades": held}
    PROMISED.write_text(_in_lines(kinds))
    print(f"{PROMISED.name}: the promises of release {release}")


def _in_lines(kinds: Mapping[str, Any]) -> str:
    """JSON with a line for each thing, so that a diff of it is read."""
    parts = [f'"release": {json.dumps(kinds["release"])}']
    for kind, things in kinds.items():
        if kind != "release":
            lines = ",\n".join(f"  {json.dumps(t)}: {json.dumps(n)}" for t, n in things.items())
            parts.append(f'"{kind}": {{\n{lines}\n}}' if lines else f'"{kind}": {{}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    _write(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else NO_RELEASE)
