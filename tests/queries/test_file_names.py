"""Names of files made of names from dumps."""

from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.reporting.file_names import file_name, page_name, told_apart

PARTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=150), min_size=2, max_size=3)
SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def test_a_usual_name_stays_readable():
    assert file_name("llama-v5e", "jit_train_step") == "llama-v5e.jit_train_step"
    parts = ("llama-v5e-jax0.7.0", "jit_train_step", "tpu")
    assert page_name(*parts) == file_name(*parts) == "llama-v5e-jax0.7.0.jit_train_step.tpu"


def test_a_folder_and_a_place_outside_are_no_part_of_a_name():
    assert file_name("../../etc", "passwd") == "_.._etc.passwd"
    assert file_name("a/b", "c\\d:e") == "a_b.c_d_e"
    assert file_name(".", "jit_f") == "jit_f"
    assert file_name("", "") == "_"


def test_a_device_of_windows_is_no_name():
    assert file_name("con", "jit_f") == "_con.jit_f"
    assert file_name("console", "jit_f") == "console.jit_f"


@given(PARTS)
def test_a_name_can_be_used_everywhere(parts):
    for name in (file_name(*parts), page_name(*parts)):
        assert name
        assert set(name) <= SAFE
        assert len(name) <= 120
        assert not name.startswith((".", "-"))


@given(PARTS, PARTS)
def test_different_parts_make_different_pages_on_any_disk(some, others):
    same_files = page_name(*some).lower() == page_name(*others).lower()
    assert same_files == (some == others)


def test_capitals_and_replaced_characters_are_told_apart():
    names = {page_name(name, "jit_f", "tpu") for name in ("a", "A", "a/b", "a_b", "a b", "ä", "ö")}
    assert len({name.lower() for name in names}) == 7


def test_series_of_one_name_are_told_apart():
    named = told_apart({1: "x", 2: "x", 3: "y"})
    assert named[3] == "y"
    assert named[1] != named[2]
    assert all(name.startswith("x-") for name in (named[1], named[2]))
