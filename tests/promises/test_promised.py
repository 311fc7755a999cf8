"""What a release promises by name is kept: tables, columns, options, arguments.

`docs/versions.md` says what may change in which version; `promised.json` lists the names.
"""

import copy
import csv
import json

import pytest
import typer.main

from memhouse.cli.app import build_app

from ..support.command import run_memhouse
from ..support.promised import (
    NO_RELEASE,
    PRINTING_ROWS,
    PROMISED,
    broken,
    promised_by_code,
    upgrades,
)

# The columns are those of a view that is promised itself, or of the user's own query.
OF_ANOTHER = {"export", "fit", "sql", "views"}


@pytest.fixture(scope="module")
def promised():
    kinds = json.loads(PROMISED.read_text())
    del kinds["release"], kinds["upgrades"]
    return kinds


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    return promised_by_code(tmp_path_factory.mktemp("promised"))


@pytest.mark.slow
def test_what_was_promised_is_there(promised, offered):
    gone = "\n".join(broken(promised, offered))
    assert not gone, (
        f"promised, and gone or in another order:\n{gone}\n"
        "Keep it. If it must go: from 1.0 the next release is a major one, before 1.0 a minor "
        "one; CHANGELOG.md says so under Changed, and `make promises` writes the list anew. "
        "See docs/versions.md."
    )


def test_a_released_upgrade_of_the_schema_does_not_change():
    kept = json.loads(PROMISED.read_text())
    there = upgrades()
    for name, content in kept["upgrades"].items():
        assert there.get(name) == content, f"{name} is released: add an upgrade after it"
    assert bool(kept["upgrades"]) == (kept["release"] != NO_RELEASE)


def test_every_command_that_prints_rows_is_listed():
    printing = {command.split()[0] for command in PRINTING_ROWS}
    for name, command in typer.main.get_command(build_app()).commands.items():
        has_format = any("--format" in parameter.opts for parameter in command.params)
        assert has_format == (name in printing | OF_ANOTHER), name


DAMAGES = [
    (lambda o: o["views"]["peaks"].remove("peak_bytes"), "views: peaks: peak_bytes"),
    (lambda o: o["csv"].pop("runs"), "csv: runs: run_at"),
    (lambda o: o["csv"]["peaks"].reverse(), "csv: peaks: the order of"),
    (
        lambda o: o["options"]["memhouse peaks"].remove("--run"),
        "options: memhouse peaks: --run",
    ),
    (lambda o: o["python"]["Warehouse.diff"].remove("by"), "python: Warehouse.diff: by"),
    (
        lambda o: o["tables"].update(scopes=["module_id BIGINT", "scope_id BIGINT"]),
        "tables: scopes: scope_id INTEGER",
    ),
]


@pytest.mark.slow
def test_a_broken_promise_is_noticed_and_an_addition_is_none(offered):
    for damage, says in DAMAGES:
        damaged = copy.deepcopy(offered)
        damage(damaged)
        assert any(found.startswith(says) for found in broken(offered, damaged)), says
    more = copy.deepcopy(offered)
    more["views"]["peaks"].insert(2, "added")
    more["views"]["new"] = ["module_id"]
    more["options"]["memhouse peaks"].append("--new")
    assert broken(offered, more) == []


def test_json_has_the_names_of_csv(filled):
    for command in ("peaks", "runs", "modules"):
        told = run_memhouse(command, "--db", filled, "-f", "csv").stdout
        header, *_ = csv.reader(told.splitlines())
        for row in json.loads(run_memhouse(command, "--db", filled, "-f", "json").stdout):
            assert list(row) == header
