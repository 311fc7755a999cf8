"""What a release is made of: its notes and its version; `test_house.py` packs it."""

import shutil
import subprocess
import sys
from pathlib import Path

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


def notes(folder, version):
    return subprocess.run(
        [folder / ".ci/release-notes", version], capture_output=True, text=True, timeout=10
    )


def test_the_notes_of_a_release_are_its_section(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/release-notes", tmp_path / ".ci")
    assert notes(tmp_path, "0.2.0").stdout.strip() == "### Added\n\n- two"
    assert notes(tmp_path, "0.1.0").stdout.strip() == "- one"
    done = notes(tmp_path, "0.3.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "0.3.0" in done.stderr
    # The heading that becomes the next version's.
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
