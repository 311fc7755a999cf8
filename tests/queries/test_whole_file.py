"""A file is written whole or not at all, also where two write it at once."""

import subprocess
import sys

import pytest

from memhouse.queries.whole_file import whole_file
from memhouse.schema.errors import FileError

# Begins to write a file, and goes on once it is told to.
OTHER = """
import sys
from pathlib import Path
from memhouse.queries.whole_file import whole_file

with whole_file(Path(sys.argv[1])) as partial:
    partial.write_text("the other's")
    print("begun", flush=True)
    sys.stdin.readline()
"""


def test_two_processes_write_one_file_and_the_last_wins(tmp_path):
    file = tmp_path / "x.html"
    command = [sys.executable, "-c", OTHER, str(file)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout
        assert other.stdin
        assert other.stdout.readline() == "begun\n"
        with whole_file(file) as partial:
            partial.write_text("mine")
        assert file.read_text() == "mine"
        other.communicate("go on\n", timeout=60)
    assert other.returncode == 0
    assert file.read_text() == "the other's"
    assert [each.name for each in tmp_path.iterdir()] == ["x.html"]


@pytest.mark.parametrize("letter", ["x", "\N{GREEK SMALL LETTER OMEGA}"])
def test_a_name_may_be_the_longest_that_a_disk_takes(tmp_path, letter):
    file = tmp_path / (letter * (255 // len(letter.encode())))
    with whole_file(file) as partial:
        partial.write_text("mine")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["none/x.html", "link.html"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    (tmp_path / "link.html").symlink_to("none/x.html")
    told = f"cannot write {tmp_path / name}: there is no folder {tmp_path / 'none'}"
    with pytest.raises(FileError) as error, whole_file(tmp_path / name) as partial:
        partial.write_text("mine")
    assert str(error.value) == told
