"""The tree behind the treemap: every byte of the peak, in owners that can be found again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhouse.queries.reporting.module.owner_tree import PATHS, owner_tree

names = st.one_of(st.none(), st.text(max_size=6), st.sampled_from(["a/b", "a/c", "p['w'][0]"]))
made_buffers = st.lists(
    st.fixed_dictionaries(
        {
            "counted_bytes": st.integers(1, 2**50),
            "kind": st.sampled_from(["arguments", "copies of arguments", "temps", "constants"]),
            "category": st.just("temp"),
            **dict.fromkeys(("scope", "op_name", "source_file", "function"), names),
            **dict.fromkeys(("role", "operation", "shape", "value"), st.sampled_from([None, "a"])),
            "source_line": st.integers(1, 3),
            "is_guess": st.booleans(),
        }
    ),
    max_size=30,
)


def buffer(size, **told):
    empty = dict.fromkeys(("role", "scope", "operation", "op_name", "source_file", "source_line"))
    named = {"function": None, "shape": "f32[8]{0}", "value": "add.1", "is_guess": False}
    return {**empty, **named, "kind": "temps", "counted_bytes": size, **told}


def argument(name, size=8):
    return buffer(size, kind="arguments", role="weight", op_name=name)


def walk(owner):
    yield owner
    for child in owner.children:
        yield from walk(child)


def outline(owner):
    """The tree's names, nested."""
    return {child.name: outline(child) for child in owner.children}


@pytest.mark.parametrize("by", PATHS)
@given(buffers=made_buffers)
def test_nothing_is_lost_and_children_add_up(by, buffers):
    tree = owner_tree(buffers, by)
    assert tree.size_bytes == sum(row["counted_bytes"] for row in buffers)
    assert tree.buffers == len(buffers)
    leaves = [owner for owner in walk(tree) if not owner.children and owner is not tree]
    assert sorted(owner.size_bytes for owner in leaves) == sorted(
        row["counted_bytes"] for row in buffers
    )
    for owner in walk(tree):
        if owner.children:
            assert owner.size_bytes == sum(child.size_bytes for child in owner.children)
        assert owner.name


def test_scopes_are_split_and_arguments_have_their_own_names():
    tree = owner_tree(
        [
            buffer(30, scope="layer/attn", operation="dot"),
            buffer(20, scope="layer/mlp", operation="dot", is_guess=True),
            argument("p['layers'][0]['q']"),
            argument("p['layers'][1]['q']", 7),
        ],
        "scope",
    )
    assert outline(tree) == {
        "layer": {"attn / dot / f32[8] add.1": {}, "mlp / dot / f32[8] add.1?": {}},
        "(arguments) / weight / p / p['layers']": {
            "p['layers'][0]['q']": {},
            "p['layers'][1]['q']": {},
        },
    }


def test_source_is_file_function_and_line():
    line = {"source_file": "/a/net.py", "function": "mlp"}
    tree = owner_tree(
        [
            buffer(30, **line, source_line=3),
            buffer(20, **line, source_line=4),
            buffer(9, source_file="/b/net.py", source_line=3),
        ],
        "source",
    )
    assert outline(tree) == {
        "net.py / mlp": {"net.py:3 / f32[8] add.1": {}, "net.py:4 / f32[8] add.1": {}},
        "net.py:3 / f32[8] add.1": {},
    }


def test_small_owners_are_one_that_can_be_entered():
    sizes = [10**9, 10**8, *([5] * 3000)]
    tree = owner_tree(
        [buffer(n, scope=f"s{at}", operation="add") for at, n in enumerate(sizes)], "scope"
    )
    assert len(tree.children) == 9
    more = tree.children[-1]
    assert more.name == "2994 more"
    assert more.buffers == 2994
    assert more.children[0].name == "9 to 83"
    assert max(len(owner.children) for owner in walk(tree)) <= 41


def test_a_deep_or_strange_name_is_a_name():
    name = "p" + "['x']" * 150 + "]["
    assert list(walk(owner_tree([argument(name)], "scope")))[-1].name.endswith(name)


@pytest.mark.parametrize("by", PATHS)
def test_a_name_of_thousands_of_parts_ends_somewhere(by):
    deep = "very long/" * 5000
    tree = owner_tree(
        [
            buffer(3, scope=deep + "a"),
            buffer(2, scope=deep + "b"),
            buffer(1, scope="very long/" * 4000),
            argument("p" + "['x']" * 5000),
            argument("p" + "['x']" * 4000),
        ],
        by,
    )
    assert tree.size_bytes == sum(owner.size_bytes for owner in walk(tree) if not owner.children)
    assert tree.buffers == 5
