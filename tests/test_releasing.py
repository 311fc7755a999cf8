"""What a release is made of: its notes, its workflows, its version."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from .test_house import missing_from

ROOT = Path(__file__).parents[1]
CHANGELOG = """# Changelog

## Unreleased

- not yet

## 0.2.0 - 2026-12-01

### Added

- two

## 0.1.0 - 2026-11-01

- one
"""


@pytest.fixture
def changelog(tmp_path):
    """A folder with a changelog, and the script that reads it."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/release-notes", tmp_path / ".ci")
    return tmp_path


def notes(folder, version):
    return subprocess.run(
        [folder / ".ci/release-notes", version], capture_output=True, text=True, timeout=10
    )


def test_the_notes_of_a_release_are_its_section(changelog):
    assert notes(changelog, "0.2.0").stdout.strip() == "### Added\n\n- two"
    assert notes(changelog, "0.1.0").stdout.strip() == "- one"


def test_a_version_without_a_section_is_no_release(changelog):
    done = notes(changelog, "0.3.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CHANGELOG.md says nothing of 0.3.0" in done.stderr


def test_the_next_release_has_notes():
    """The heading that becomes the next version's."""
    assert notes(ROOT, "Unreleased").stdout.strip()


def test_a_checkout_that_was_not_installed_still_runs(tmp_path):
    """After a pull there may be no `_version.py`."""
    copy = tmp_path / "memhouse"
    ignored = shutil.ignore_patterns(
        "[!a-z_]*", "_version.py", "tests", "docs", "benchmarks", "build"
    )
    shutil.copytree(ROOT, copy, ignore=ignored)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code += "; import memhouse; print(memhouse.__version__, memhouse.__file__)"
    # Without what is installed, which would find the checkout's.
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.0", str(copy / "__init__.py")]


@pytest.fixture
def tagged(tmp_path):
    """A copy of the checkout with a commit and a tag of its own."""
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
    return copy


@pytest.mark.slow
def test_the_sdist_has_the_tag_and_what_the_wheel_takes(tagged, tmp_path):
    """Tests, docs and dumps stay in the repository: they are most of its bytes."""
    built = tmp_path / "dist"
    subprocess.run(
        [tagged / ".ci/package", built],
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
    assert sdist.stat().st_size < 1200 << 10
