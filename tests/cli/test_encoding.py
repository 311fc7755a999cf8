"""Terminals of C and Latin-1 locales: ASCII stands for the characters that they lack."""

import io

import pytest

from memhouse.cli.encoding import replace_unencodable
from memhouse.cli.render.chart import _MARKS
from memhouse.queries.result import _BARS

from ..support.command import run_process
from ..support.samples import samples_warehouse


def encoded(text, encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    replace_unencodable(stream)
    stream.write(text)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def test_what_an_encoding_lacks_is_ascii():
    assert encoded("≈ 1 → 2 …x ± 3", "ascii") == "~ 1 > 2 .x + 3"
    assert encoded("≈ größe ± 名 \udcff\u200b.", "latin-1") == "~ größe ± ?? ?."
    assert encoded("≈ größe ± 名 \udcff", "utf-8") == "≈ größe ± 名 ?"
    for marks in (_MARKS, _BARS):
        as_ascii = encoded(marks, "ascii")
        assert len(as_ascii) == len(marks)
        assert "?" not in as_ascii


C = {"LC_ALL": "C", "PYTHONUTF8": "0"}
LATIN_1 = {"PYTHONIOENCODING": "latin-1"}


@pytest.mark.parametrize(
    ("command", "environment"),
    [("check --help", C), ("trends", LATIN_1), ("trends -f csv", C)],
)
def test_commands_print_in_other_locales(command, environment):
    done = run_process(*command.split(), "--db", samples_warehouse(), env=environment)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done.stdout.isascii()
