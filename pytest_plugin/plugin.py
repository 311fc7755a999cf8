"""What pytest calls: options, the fixture `memory`, and the marker `limit_memory`.

Every pytest imports this file where memhouse is installed: all else is imported when a test asks
for `memory` or has the marker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..compile.fitted import Fitted
    from ..queries.read_module import ReadModule
    from ..schema.store import Store
    from .baseline import Before, Tests
    from .measured import Limit, Measured

_BASELINE = "memory-baseline.toml"
_NAME = "limit_memory"
# The property of a test that has a first measurement.
_NEW = "memhouse_new"
_MARKER = (
    f'{_NAME}(most, *, space="hbm", growth=None, workload=None): fail if a program given to the'
    " fixture `memory` takes more than `most` at its peak, or grew by more than `growth`."
)
_read: pytest.StashKey[list[ReadModule]] = pytest.StashKey()
_limits: pytest.StashKey[list[Limit]] = pytest.StashKey()
_measured: pytest.StashKey[list[Measured]] = pytest.StashKey()
_read_baseline: pytest.StashKey[Tests] = pytest.StashKey()
_warehouse: pytest.StashKey[Store] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and the same for the project's settings."""
    group = parser.getgroup("memhouse", "memory of compiled programs")
    group.addoption(
        "--memory-baseline",
        metavar="FILE",
        help=f"the file that growth is held against; {_BASELINE} unless the setting"
        " `memory_baseline` names another",
    )
    group.addoption(
        "--memory-update",
        action="store_true",
        help="write what the tests that run measure to this file, instead of judging growth",
    )
    group.addoption(
        "--memhouse-db",
        metavar="DB",
        help="hold growth against the newest run in this warehouse, instead of a file",
    )
    group.addoption(
        "--memory-strict",
        action="store_true",
        help="fail a program that has no figures before, instead of a note: for CI",
    )
    parser.addini("memory_baseline", "the file that growth is held against", default=_BASELINE)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and where it is asked for, what writes the baseline."""
    config.addinivalue_line("markers", _MARKER)
    if not config.getoption("memory_update"):
        return
    if config.getoption("memhouse_db"):
        raise pytest.UsageError(
            "--memory-update writes a file, and --memhouse-db holds against a warehouse: give one"
        )
    from ..schema.errors import MemhouseError
    from .baseline import Updates

    try:
        config.pluginmanager.register(Updates(config, _baseline_file(config)), "memhouse-updates")
    except MemhouseError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of the warehouse."""
    if _warehouse in config.stash:
        config.stash[_warehouse].close()


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Iterator[_Memory]:
    """Read a compiled program, or compile a lowered one; its figures and owners.

    `memory(compiled)`, `memory(lowered)` or `memory(jitted, *args)`: also HLO text and the path
    of a dumped module, as `memhouse.read` takes them. The result is a `ReadModule`.
    """
    found: list[ReadModule] = []
    request.node.stash[_read] = found
    yield _Memory(found, request.config)
    # Each module is a database in memory.
    found.clear()


class _Memory:
    """The fixture: reads programs, and remembers them for the marker."""

    def __init__(self, found: list[ReadModule], config: pytest.Config) -> None:
        self._found = found
        self._config = config

    def __call__(self, program: Any, *args: Any, **kwargs: Any) -> ReadModule:
        """The program's figures; raises UsageError for what is no program."""
        __tracebackhide__ = True
        from .. import UsageError, read, record

        held = isinstance(program, str | bytes | bytearray | memoryview | os.PathLike)
        # Flax NNX and Equinox wrap JAX's compiled program, as `compiled`.
        is_compiled = held or any(hasattr(program, a) for a in ("runtime_executable", "compiled"))
        takes = read if is_compiled and not (args or kwargs) else record
        try:
            module = takes(program, *args, **kwargs)
        except UsageError as error:
            # What the test did wrong is in the test.
            raise UsageError(str(error)) from None
        self._found.append(module)
        return module

    def fits(self, build: Callable[..., Any] | str, /, **asked: Any) -> Fitted:
        """Fail the test unless the program fits in all that is asked, see `memhouse.fit`.

        `memory.fits(build, batch=64, topology="v5e:2x2")`. What was compiled stays in pytest's
        cache: the same program is not compiled again.
        """
        __tracebackhide__ = True
        from .. import fit
        from ..queries.result import human

        # Only one process can use a warehouse. With -p no:cacheprovider there is no cache.
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        cache = getattr(self._config, "cache", None)
        db = cache.mkdir("memhouse") / f"fit-{worker}.duckdb" if cache else ":memory:"
        found = fit(build, db=db, **asked)
        lines = []
        for row in found.arrow().to_pylist():
            if row["outcome"] != "fits":
                figures = [human(name, row[name]) for name in ("reserved_bytes", "capacity_bytes")]
                why = " of ".join(figures) if all(figures) else row["message"]
                what = " ".join(f"{name}={row[name]}" for name in asked if name in row)
                lines.append(f"{what} {row['outcome']}: {why}")
        if lines:
            pytest.fail("\n".join(lines), pytrace=False)
        return found


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wrong arguments of the marker are told before the test runs."""
    if not _is_ours(item):
        return
    from .measured import read_limits

    try:
        item.stash[_limits] = read_limits(item.iter_markers(_NAME))
        return
    except (TypeError, ValueError) as error:
        wrong = str(error)
    path, line, _ = item.location
    pytest.fail(f"{path}:{(line or 0) + 1}: @pytest.mark.{_NAME}: {wrong}", pytrace=False)


def _is_ours(item: pytest.Item) -> bool:
    """Whether the item has the marker; pytest-memray has one of this name, without our fixture."""
    if item.get_closest_marker(_NAME) is None:
        return False
    is_memrays = item.config.pluginmanager.hasplugin("memray")
    return not is_memrays or "memory" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the programs of a test that passes."""
    result = yield
    limits = item.stash.get(_limits, [])
    if not limits:
        return result
    modules = item.stash.get(_read, [])
    if not modules:
        pytest.fail(f"{_NAME}: this test gives the fixture `memory` no program", pytrace=False)
    from ..schema.errors import MemhouseError

    item.stash[_measured] = []
    try:
        told = [text for limit in limits for text in _judged(item, limit, modules)]
    except (MemhouseError, ValueError) as error:
        told = [str(error)]
    if told:
        pytest.fail("\n\n".join(told), pytrace=False)
    return result


def _judged(item: pytest.Item, limit: Limit, modules: list[ReadModule]) -> Iterator[str]:
    """What is said of each program that breaks a limit."""
    from .breaches import breach
    from .measured import measure_all

    found = measure_all(modules, limit.space, item.config.rootpath)
    if limit.growth is not None:
        item.stash[_measured] += found
    for module, measured in zip(modules, found, strict=True):
        try:
            before = _before(item, limit, module, measured)
        except ValueError as error:
            yield str(error)
            before = None
        text = breach(measured, limit, before)
        if text is not None:
            yield text


def _before(
    item: pytest.Item, limit: Limit, module: ReadModule, measured: Measured
) -> Before | None:
    """What the program is held against; None if growth is not judged, or it is new there."""
    config = item.config
    if limit.growth is None or config.getoption("memory_update"):
        return None
    if db := config.getoption("memhouse_db"):
        from ..queries.catalogue import open_with_views
        from .baseline import before_in_warehouse

        if _warehouse not in config.stash:
            config.stash[_warehouse] = open_with_views(db, read_only=True)
        before = before_in_warehouse(config.stash[_warehouse], module, measured, limit.workload)
        if before is None:
            _tell_of_new(item, measured, db, "ingest a run that has it")
        return before
    from .baseline import before_in, read_baseline

    file = _baseline_file(config)
    if _read_baseline not in config.stash:
        config.stash[_read_baseline] = read_baseline(file)
    shown = file.relative_to(config.rootpath) if file.is_relative_to(config.rootpath) else file
    before = before_in(config.stash[_read_baseline], str(shown), _test(item), measured)
    if before is None:
        _tell_of_new(item, measured, str(shown), "pytest --memory-update, and commit the file")
    return before


def _tell_of_new(item: pytest.Item, measured: Measured, holder: str, to_record: str) -> None:
    """Note a first measurement, and how to record it; with `--memory-strict` raise ValueError."""
    new = f"{measured.key} is new: {holder} has no peak of it"
    if item.config.getoption("memory_strict"):
        raise ValueError(f"{new}\n  now: {measured.peak}\n  to accept it: {to_record}")
    # xdist sends the properties of a test on, and JUnit's file has them.
    item.user_properties.append((_NEW, f"{new}. To record it: {to_record}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the first measurements: they are no failures, and no warnings either."""
    told = [
        f"{report.nodeid}: {text}"
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, text in report.user_properties
        if name == _NEW
    ]
    if told:
        terminalreporter.section("first measurements, not judged for growth")
        for line in told:
            terminalreporter.line(line)


def _test(item: pytest.Item) -> str:
    """The test's name, without the group that xdist adds to its id."""
    return f"{item.parent.nodeid}::{item.name}" if item.parent else item.nodeid


def _baseline_file(config: pytest.Config) -> Path:
    """The file as given on the command line, or as the setting has it, from the project's root."""
    given = config.getoption("memory_baseline")
    if given is not None:
        return config.invocation_params.dir / str(given)
    return config.rootpath / str(config.getini("memory_baseline"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test measured goes with its report, if it is to be written: xdist sends it on."""
    report = yield
    measured = item.stash.get(_measured, [])
    is_accepted = report.when == "call" and report.passed and item.config.getoption("memory_update")
    if measured and is_accepted:
        from .baseline import CARRIED, entries

        setattr(report, CARRIED, {_test(item): entries(measured)})
    return report
