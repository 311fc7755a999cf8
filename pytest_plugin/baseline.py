"""What programs took before: in a baseline file under version control, or in a warehouse."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from ..queries.read_module import ReadModule
from ..queries.result import counted
from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from ..schema.store import Store
from .measured import Measured, platform_in

# What a program took before, wherever that is kept.


@dataclass(frozen=True)
class Change:
    """An owner that takes more bytes at the peak than before, or fewer."""

    change_bytes: int
    owner: str


@dataclass(frozen=True)
class WhatChanged:
    """The owners that changed, the largest change first, and the cause in a line if it is known."""

    owners: tuple[Change, ...]
    cause: str | None = None


@dataclass(frozen=True)
class Before:
    """A program's earlier peak in bytes.

    kept_in: where it is kept, for a sentence; to_accept: what to do if the growth is meant;
    what_changed: asked only of a program that fails, because it may take long.
    """

    kept_in: str
    peak_bytes: int
    is_estimate: bool
    to_accept: str
    what_changed: Callable[[], WhatChanged]


# The baseline: a TOML file under version control, with the peaks that tests were accepted with.

_HEAD = """\
# What tests with limit_memory(growth=...) may grow from: peaks in bytes, and who owns them.
# `pytest --memory-update` writes this file.
"""
# An owner of less of the peak is not worth a line.
_WORTH = 0.01
Tests = dict[str, dict[str, dict[str, Any]]]


def read_baseline(file: Path) -> Tests:
    """For each test the programs, each with peak_bytes and owners; empty if there is no file.

    Raises UsageError for a file that is no baseline.
    """
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file}: {why}: {_MEND}") from None
    for test, programs in found.items():
        for key, entry in (programs if isinstance(programs, dict) else {"": None}).items():
            if not _is_entry(entry):
                where = f"[{_text(test)}.{_text(key)}]"
                raise UsageError(f"{file}: {where} is no entry of a baseline: {_MEND}")
    return found


_MEND = "mend it, or delete it and run pytest --memory-update"


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("owners", {}), dict):
        return False
    sizes = [entry.get("peak_bytes"), *entry.get("owners", {}).values()]
    return all(isinstance(size, int) and size >= 0 for size in sizes)


def before_in(tests: Tests, file: str, test: str, measured: Measured) -> Before | None:
    """What a baseline says of a program of a test."""
    entry = tests.get(test, {}).get(measured.key)
    if entry is None:
        return None
    peak, owners = entry["peak_bytes"], entry.get("owners", {})
    return Before(
        file,
        peak,
        bool(entry.get("is_estimate")),
        "pytest --memory-update",
        lambda: WhatChanged(tuple(_changes(owners, _WORTH * peak, measured))),
    )


def _changes(before: dict[str, int], worth: float, measured: Measured) -> list[Change]:
    """The owners whose bytes changed; what is not worth a line in the baseline may be as it was.

    A line that is gone and a new one of its file that is much like it are the same line, edited.
    """
    now, places = measured.owners, {line.text: line.where for line in reversed(measured.lines)}
    came = [owner for owner, size in now.items() if owner not in before and size >= worth]
    gone = [owner for owner in before if owner not in now]
    was = {owner: before.get(owner, 0) for owner in (*came, *(o for o in now if o in before))}
    for owner in tuple(gone):
        file, _, code = owner.partition(": ")
        new = {o.partition(": ")[2]: o for o in came if o.startswith(f"{file}: ") and not was[o]}
        for same in get_close_matches(code, new, n=1):
            was[new[same]] = before[owner]
            gone.remove(owner)
    changes = [Change(now[owner] - size, _shown(owner, places)) for owner, size in was.items()]
    changes += [Change(-before[owner], f"{owner} (gone)") for owner in gone]
    changed = [each for each in changes if each.change_bytes]
    return sorted(changed, key=lambda each: (-abs(each.change_bytes), each.owner))


def _shown(owner: str, places: Mapping[str, str]) -> str:
    where = places[owner]
    return owner if where == owner else f"{where}  {owner.partition(': ')[2]}"


def entries(measured: Iterable[Measured]) -> dict[str, dict[str, Any]]:
    """The programs of one test as the baseline keeps them."""
    return {each.key: _entry(each) for each in measured}


def _entry(measured: Measured) -> dict[str, Any]:
    least = _WORTH * measured.peak_bytes
    estimate = {"is_estimate": True} if measured.is_estimate else {}
    owners = {owner: size for owner, size in measured.owners.items() if size >= least}
    return {"peak_bytes": measured.peak_bytes, **estimate, "owners": owners}


def joined(before: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """The entries of a test that ran: what it took on other platforms stays."""
    ran = {platform_in(key) for key in measured}
    return {key: each for key, each in before.items() if platform_in(key) not in ran} | measured


def write_baseline(file: Path, tests: Tests) -> None:
    """Write the baseline, in order of tests; the file is whole at every moment. Raises OSError."""
    texts = [_HEAD]
    for test, programs in sorted(tests.items()):
        for key, entry in sorted(programs.items()):
            texts.append(f"\n[{_text(test)}.{_text(key)}]\n")
            texts.append(f"peak_bytes = {entry['peak_bytes']}\n")
            if entry.get("is_estimate"):
                texts.append("is_estimate = true\n")
            for owner, size in sorted(entry.get("owners", {}).items(), key=lambda o: (-o[1], o[0])):
                texts.append(f"owners.{_text(owner)} = {size}\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text("".join(texts), encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _text(text: str) -> str:
    """A text as TOML writes it: as JSON does, but for the one character that only TOML escapes."""
    told = text.encode(errors="backslashreplace").decode()
    return json.dumps(told, ensure_ascii=False).replace("\x7f", "\\u007f")


# `--memory-update`: what all tests measured, written once, at the end.

# What a report carries from a worker of xdist to the process that writes the baseline.
CARRIED = "memhouse_measured"
_GONE = "memhouse_gone"


class Updates:
    """Collects what tests that passed measured, and writes it where this is no worker of xdist.

    A test is gone if its file or class was collected and no longer has it. Its entries go.
    """

    def __init__(self, config: pytest.Config, file: Path) -> None:
        """Raises UsageError for a file that is no baseline."""
        self._config = config
        self._file = file
        self._before = read_baseline(file)
        self._collected: dict[str, set[str]] = {}
        self._gone: set[str] = set()
        self._ran: dict[str, dict[str, Any]] = {}
        self._told: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what a file or a class has, whatever of it is selected."""
        if report.passed and "::" in "".join(each.nodeid for each in report.result):
            self._collected[report.nodeid] = {each.nodeid for each in report.result}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker of xdist found gone: only workers collect."""
        self._gone.update(getattr(node, "workeroutput", {}).get(_GONE, ()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test measured."""
        self._ran.update(getattr(report, CARRIED, {}))

    def pytest_sessionfinish(self) -> None:
        """Write the file. Raises pytest.UsageError if it cannot be written."""
        root = self._config.rootpath
        self._gone |= {test for test in self._before if self._is_gone(test, root)}
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_GONE] = sorted(self._gone)
            return
        tests = {test: own for test, own in self._before.items() if test not in self._gone}
        for test, measured in self._ran.items():
            tests[test] = joined(tests.get(test, {}), measured)
        tests = {test: own for test, own in tests.items() if own}
        self._told = self._what_changed(tests)
        if tests == self._before:
            return
        try:
            write_baseline(self._file, tests)
        except OSError as error:
            self._told = []
            raise pytest.UsageError(f"cannot write {self._file}: {error.strerror}") from None

    def _is_gone(self, test: str, root: Path) -> bool:
        if not (root / test.partition("::")[0]).exists():
            return True
        return any(
            test.startswith(f"{collector}::")
            and not any(test == each or test.startswith(f"{each}::") for each in there)
            for collector, there in self._collected.items()
        )

    def _what_changed(self, tests: Tests) -> list[str]:
        """A line for each program whose peak is not what the baseline had."""
        before, now = _peaks(self._before), _peaks(tests)
        changed = [
            f"  {test}: {program}: {_size(before.get((test, program)))} → "
            f"{_size(now.get((test, program)))}"
            for test, program in sorted({*before, *now})
            if before.get((test, program)) != now.get((test, program))
        ]
        if not now:
            return ["memory: no test that passed has a limit on growth"]
        said = f"{counted(len(changed), 'peak')} changed" if changed else "nothing changed"
        return [f"memory: {self._file.name} has {counted(len(now), 'peak')}, {said}", *changed]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was written."""
        for line in self._told:
            terminalreporter.write_line(line)


def _peaks(tests: Tests) -> dict[tuple[str, str], int]:
    return {
        (test, program): entry["peak_bytes"]
        for test, programs in tests.items()
        for program, entry in programs.items()
    }


def _size(size: int | None) -> str:
    return "none" if size is None else human_bytes(size)


# What a warehouse says of a program: its newest figures on the default branch.

# A single binary does not say its platform.
_NEWEST = "SELECT * FROM latest WHERE module_name = $1 AND platform = COALESCE($2, platform)"
_PEAK = """SELECT peak_bytes, origin FROM module_memory INNER JOIN modules USING (module_id)
    WHERE module_id = $1 AND memory_space = $2"""
_KERNEL = """SELECT scoped_bytes AS peak_bytes, CASE WHEN is_bound THEN 'estimated' END AS origin
    FROM kernels WHERE module_id = $1 AND memory_space = $2 ORDER BY scoped_bytes DESC LIMIT 1"""


def before_in_warehouse(
    warehouse: Store, module: ReadModule, measured: Measured, workload: str | None
) -> Before | None:
    """The newest figures of the program with this name and platform; None if there are none.

    `workload` is needed where programs of several workloads have the name. Raises ValueError
    if it is missing or names none of them, and WarehouseError.
    """
    found = warehouse.rows(_NEWEST, [module.name, module.platform]).to_pylist()
    fitting = [row for row in found if workload in (None, *row["workloads"].split(", "))]
    if len(fitting) > 1 or (found and not fitting):
        names = ", ".join(sorted(row["workloads"] for row in found))
        raise ValueError(f"{warehouse.name} has {module.name} of {names}: give one as workload=")
    if not fitting:
        return None
    row = fitting[0]
    query = _KERNEL if measured.is_kernel else _PEAK
    peaks = warehouse.rows(query, [row["module_id"], measured.space_number]).to_pylist()
    if not peaks or peaks[0]["peak_bytes"] is None:
        return None
    return Before(
        f"run {row['run_id']} of {warehouse.name}",
        peaks[0]["peak_bytes"],
        peaks[0]["origin"] == "estimated",
        "ingest a run with it into the warehouse",
        lambda: (
            WhatChanged(())
            if measured.is_kernel
            else _what_changed(warehouse, row["dump_id"], module, measured.space_number)
        ),
    )


def _what_changed(warehouse: Store, dump_id: int, module: ReadModule, space: int) -> WhatChanged:
    """The buffers that changed by the library's own comparison, and the cause it tells."""
    found = module.changes_since(warehouse, dump_id)
    rows = [row for row in found.rows.arrow().to_pylist() if row["memory_space"] == space]
    named = [(row["change_bytes"], row["source"], row["op_name"] or row["what"]) for row in rows]
    owners = [Change(size, "  ".join(filter(None, (at, name)))) for size, at, name in named]
    return WhatChanged(tuple(owners), found.cause)
