"""XLA_FLAGS of a recorded command."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.compile.record import own_flags, own_folder, with_dump_flags
from memhouse.schema.errors import UsageError

from ...support.rounds import rounds

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@settings(max_examples=rounds(50))
@given(NAMES)
def test_any_folder_can_be_dumped_to(name):
    folder = Path("/dumps") / name
    flags = with_dump_flags("--xla_a=1 --xla_dump_to=/other", folder, only=name, text=False)
    assert flags.startswith("--xla_a=1 --xla_dump_to=/other ")
    assert own_folder(flags) == folder.absolute()


@pytest.mark.parametrize(
    ("flags", "folder"),
    [
        ("", None),
        ("--xla_cpu_max_isa=AVX", None),
        ("--xla_dump_to=", None),
        ("--xla_dump_to=/a", "/a"),
        ("--xla_dump_to=/a --xla_dump_to=/b\n--xla_c=1", "/b"),
        ('--xla_dump_to="/a b"', "/a b"),
        ("--xla_dump_to='/a b'", "/a b"),
        ("--not_xla_dump_to=/a", None),
    ],
)
def test_the_users_folder(flags, folder):
    assert own_folder(flags) == (folder and Path(folder))


def test_a_relative_folder_is_below_the_current_one():
    assert own_folder("--xla_dump_to=dumps") == Path.cwd() / "dumps"


@pytest.mark.parametrize("folder", ["-", "sponge", "gs://bucket/dumps"])
def test_a_place_that_is_no_folder(folder):
    with pytest.raises(UsageError, match=folder):
        own_folder(f"--xla_dump_to={folder}")


def test_the_users_folder_stays_as_the_user_knows_it():
    added = with_dump_flags("--xla_dump_to=/a", None, only=None, text=True)
    assert added == ("--xla_dump_to=/a --xla_dump_hlo_as_proto=true --xla_dump_hlo_as_text=true")
    passes = with_dump_flags("--xla_dump_to=/a", None, only=None, text=False, passes=True)
    assert passes == f"{added} --xla_dump_hlo_pass_re=.*"


def test_flags_in_a_file(tmp_path):
    (tmp_path / "flags").write_text("--xla_a=1\n--xla_b=2\n")
    assert own_flags({"XLA_FLAGS": str(tmp_path / "flags")}) == "--xla_a=1\n--xla_b=2"
    # XLA does not mind either.
    assert own_flags({"XLA_FLAGS": str(tmp_path / "none")}) == ""
    assert own_flags({"XLA_FLAGS": "  --xla_a=1 "}) == "--xla_a=1"
    assert own_flags({}) == ""
