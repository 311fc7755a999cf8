"""Fixtures that many tests share: a warehouse of the sample dumps, and one of ten nights."""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .support.pages import link_samples
from .support.samples import samples_warehouse
from .support.warehouse import reading

# What programs print is tested as in a pipe on one's own machine: in CI and under these settings
# Typer colours pipes too, and pytest repeats each failure in full.
for _name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
    os.environ.pop(_name, None)
# Commands are started thousands of times: compile their code once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The same examples each time, so that only a change can fail; `make test-random` tries others. A
# test has a time limit, its examples have none: other tests run beside it.
settings.register_profile(
    "memhouse",
    derandomize="MEMHOUSE_TEST_ROUNDS" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("memhouse")
_HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name each test that fails as it fails."""
    if hasattr(config, "workerinput"):
        return
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        config.pluginmanager.register(_FailuresAtOnce(terminal))


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: a test waits for processes and disks a quarter of its time."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker does a file, or what a mark says is one group: what is set up is set up once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(_HERE))))


class _FailuresAtOnce:
    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.terminal.write_line(f"\nFAILED {report.nodeid} ({report.when})")


@pytest.fixture(scope="session")
def filled() -> Path:
    """A warehouse of all sample dumps: the file. Copy it to change it."""
    return samples_warehouse()


@pytest.fixture(scope="session")
def warehouse(filled: Path) -> Iterator[Any]:
    """The same, open for reading: DuckDB's connection."""
    with reading(filled) as store:
        yield store.connection


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where a warehouse may be made."""
    return tmp_path / "memhouse.duckdb"


@pytest.fixture
def copied(filled: Path, db: Path) -> Path:
    """A copy of the warehouse of all sample dumps."""
    return Path(shutil.copy(filled, db))


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A folder that has the samples of a checkout, to run commands in."""
    return link_samples(tmp_path / "checkout")


@pytest.fixture(scope="session")
def nights():
    """The folder of the ten nights, one in each. Only read it."""
    from .support.history import nights as unpacked

    return unpacked()


@pytest.fixture(scope="session")
def history():
    """The ten nights' warehouse. Only read it."""
    from .support.history import history as filled_with_nights

    return filled_with_nights()


@pytest.fixture(scope="session")
def hosts():
    """A warehouse of eight hosts and two branches. Only read it."""
    from .support.hosts import hosts as filled_with_hosts

    return filled_with_hosts()


@pytest.fixture
def own(history, db):
    """A copy of the ten nights' warehouse, to write to."""
    return shutil.copy(history, db)


@pytest.fixture
def limits(tmp_path):
    """Writes a limits file: the option that names it."""

    def write(text: str) -> tuple[str, str]:
        (tmp_path / "limits.toml").write_text(text)
        return "--limits", str(tmp_path / "limits.toml")

    return write


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, one for all tests of a process; skips where there is none."""
    from .support import browser as support

    if why := support.missing():
        pytest.skip(f"reports need a browser: {why}")
    with support.browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def llama_page(filled, tmp_path_factory):
    """The report of the llama module of the TPU. Only read it."""
    from .support.reports import write_report

    return write_report(filled, "tpu", tmp_path_factory.mktemp("llama") / "llama.html")


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """An S3 server on this machine."""
    from .support.s3_server import s3_server

    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3, monkeypatch):
    """An empty bucket, which clients of this process and of those it starts find."""
    from .support.s3_server import Bucket, set_environment

    made = Bucket(s3, f"bucket-{uuid.uuid4().hex[:12]}")
    s3.client.create_bucket(Bucket=made.name)
    set_environment(monkeypatch, s3.environment)
    return made
