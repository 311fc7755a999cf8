"""`--memory-update`: what all tests measured, written once, at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..queries.cells import counted, human_bytes
from .baseline_file import Tests, joined, read_baseline, write_baseline

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
