"""What charts are drawn from: nothing is left out, and what is merged or split adds up."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memhouse.report.address_map import colourings, merged, rectangles
from memhouse.report.export_trace import lanes_of, most_at_once
from memhouse.report.module_spaces import module_buffers
from memhouse.report.page import unbroken
from memhouse.report.treemap import PATHS, owner_tree
from memhouse.report.waterfall import Bar, bars
from memhouse.xla.scopes import folds

from ..support.rounds import rounds
from ..support.warehouse import reading

# --- lanes: live ranges side by side ----------------------------------------------------

RANGES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(0, 5)).map(
        lambda found: (found[0], found[0] + found[1], found[2])
    ),
    max_size=40,
)


@settings(max_examples=rounds(50))
@given(RANGES)
def test_every_value_is_in_one_lane_and_overlaps_none_there(ranges):
    starts, ends, offsets = ([row[place] for row in ranges] for place in range(3))
    lanes = lanes_of(starts, ends, offsets)
    assert sorted(number for lane in lanes for number in lane) == list(range(len(ranges)))
    for lane in lanes:
        lives = sorted(ranges[number][:2] for number in lane)
        assert all(end < start for (_, end), (start, _) in pairwise(lives))
    at_once = max(
        (sum(start <= time <= end for start, end, _ in ranges) for time in range(50)), default=0
    )
    assert most_at_once(starts, ends) == at_once <= len(lanes)


# --- line breaks ------------------------------------------------------------------------


def test_dates_stay_whole_long_paths_break_after_slashes_and_names_stay_text():
    assert unbroken("in 2026-10-07") == 'in <span class="short">2026-10-07</span>'
    assert unbroken("jvp()/add") == "jvp()/add"
    long = "jit(train_step)/transpose(jvp())/dot_general"
    assert unbroken(long) == long.replace("/", "/<wbr>")
    told = unbroken("</script><b onclick='x()'>2026-10-07/a-long-name")
    assert told.startswith("&lt;/<wbr>script&gt;&lt;b onclick=&#x27;x()&#x27;&gt;")
    assert told.count('<span class="short">2026-10-07</span>/<wbr>') == 1


# --- the waterfall: bars from one peak to another ---------------------------------------


def changes_of(sizes):
    ordered = sorted(sizes, key=lambda size: -abs(size))
    names = [f"owner {place}" for place in range(len(ordered))]
    return pa.table(
        {"owner": pa.array(names, pa.string()), "change_bytes": pa.array(ordered, pa.int64())}
    )


def bars_of(sizes, limit=12):
    before = sum(-size for size in sizes if size < 0)
    a, b = Bar("A", 0, before, is_peak=True), Bar("B", 0, before + sum(sizes), is_peak=True)
    return bars(changes_of(sizes), a, b, limit)


@settings(max_examples=rounds(50))
@given(st.lists(st.integers(-(2**45), 2**45).filter(bool), max_size=60), st.integers(1, 12))
def test_the_bars_lead_from_peak_to_peak(sizes, limit):
    made = bars_of(sizes, limit)
    for before, after in pairwise(made[:-1]):
        assert after.before_bytes == before.after_bytes
    assert made[-2].after_bytes == made[-1].after_bytes
    assert len(made) <= limit + 4
    # A bar says its direction without a colour.
    for bar in made[1:-1]:
        assert bar.text.startswith("▲ +" if bar.after_bytes > bar.before_bytes else "▼ -")


def test_the_rest_is_a_bar_of_growths_and_one_of_falls():
    made = bars_of([900, -800, 30, 20, -10], limit=2)[1:-1]
    assert [bar.after_bytes - bar.before_bytes for bar in made] == [900, -800, 50, -10]
    assert [bar.name[0] for bar in made[2:]] == ["2", "1"]
    # One change more has its own bar.
    assert [bar.name for bar in bars_of([3, 2, 1], limit=2)][1:-1] == [
        f"owner {place}" for place in range(3)
    ]


# --- the map: rectangles of addresses and time ------------------------------------------

LENGTH = 1000
NAMES = ("category", "allocation_index", "address", "size_bytes", "start_time", "end_time")
TYPES = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.int32())


def table(rows):
    """Buffers as `module_buffers` has them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(NAMES)
    return pa.table(
        {
            name: pa.array(column, type_)
            for name, column, type_ in zip(NAMES, columns, TYPES, strict=True)
        }
    )


def drawn(rows, extent):
    found = rectangles(table(rows), LENGTH, extent)
    return found, merged(found, table(rows), LENGTH, extent)


ROWS = st.tuples(
    st.sampled_from(["argument", "temp", "constant"]),
    st.integers(0, 3),
    st.integers(0, 1 << 34),
    st.integers(0, 1 << 30),
    st.integers(0, LENGTH - 1),
    st.integers(0, LENGTH),
).map(
    lambda row: (
        (*row[:4], min(row[4:]), max(row[4:])) if row[0] == "temp" else (*row[:4], 0, LENGTH)
    )
)


@settings(max_examples=rounds(50))
@given(st.lists(ROWS, max_size=40), st.integers(1 << 20, 1 << 40))
def test_bytes_times_positions_add_up(rows, extent):
    found, together = drawn(rows, extent)
    wanted = sum(
        size * (min(end + 1, LENGTH) - start)
        for _, _, _, size, start, end in rows
        if start < LENGTH
    )
    areas = (together.right - together.left) * (together.top - together.bottom)
    assert found.area.sum() == wanted
    large = int(found.area[~found.is_small].sum())
    assert large + areas.sum() == pytest.approx(wanted, rel=1e-9)
    assert together.count.sum() == found.is_small.sum()
    assert together.size_bytes.sum() == (found.top - found.bottom)[found.is_small].sum()


def test_only_neighbours_of_one_life_are_one_rectangle():
    kib = 1 << 10
    rows = [("argument", i, i * kib, kib, 0, LENGTH) for i in range(4)]
    _, together = drawn(rows, 1 << 30)
    assert (together.bottom.tolist(), together.top.tolist()) == ([0], [4 * kib])
    assert (together.left.tolist(), together.right.tolist()) == ([0], [LENGTH])
    assert (together.count.tolist(), together.throughout) == ([4], 1)
    # A gap between arguments stays empty.
    rows = [("argument", i, i * 2 * kib, kib, 0, LENGTH) for i in range(2)]
    assert sorted(drawn(rows, 1 << 30)[1].bottom.tolist()) == [0, 2 * kib]
    rows = [("temp", 0, 0, 512, 0, 10), ("temp", 0, 512, 512, 500, 510)]
    assert drawn(rows, 1 << 30)[1].count.tolist() == [1, 1]


def test_every_buffer_of_a_module_is_drawn_in_colours_that_tell_something(filled):
    """A decoding step is arguments and nothing else: its passes would be one colour."""
    with reading(filled) as store:
        for workload, first in (("llama-v5e", "pass"), ("decode-h100", "role")):
            ((module_id,),) = store.connection.sql(
                "SELECT module_id FROM dumps WHERE workload = $1 LIMIT 1", params=[workload]
            ).fetchall()
            buffers = module_buffers(store, module_id)
            ways = colourings(buffers)
            assert ways[0].key == first
            for way in ways:
                assert sum(way.peak_bytes) == sum(buffers["peak_counted_bytes"].to_pylist())
                assert len(way.names) == len(way.colours) == len(way.peak_bytes)
            length = max(buffers["end_time"].to_pylist())
            found = rectangles(buffers, length, 400 << 20)
            together = merged(found, buffers, length, 400 << 20)
            sizes = buffers["size_bytes"].to_numpy()
            assert sorted(found.row) == np.flatnonzero(sizes).tolist()
            assert 0 < len(together.count) <= found.is_small.sum()


# --- the treemap: every byte of the peak, in owners that can be found again -------------

TEXTS = st.one_of(st.none(), st.text(max_size=6), st.sampled_from(["a/b", "a/c", "p['w'][0]"]))
BUFFERS = st.lists(
    st.fixed_dictionaries(
        {
            "counted_bytes": st.integers(1, 2**50),
            "kind": st.sampled_from(["arguments", "copies of arguments", "temps", "constants"]),
            "category": st.just("temp"),
            **dict.fromkeys(
                ("module_path", "op_name", "source_file", "library_file", "function"), TEXTS
            ),
            **dict.fromkeys(("role", "operation", "shape", "value"), st.sampled_from([None, "a"])),
            **dict.fromkeys(("source_line", "library_line"), st.integers(1, 3)),
            "is_guess": st.booleans(),
        }
    ).map(lambda row: row | {"fold": row["module_path"]}),
    max_size=30,
)


def buffer(size, **told):
    empty = dict.fromkeys(("role", "operation", "op_name", "source_file", "source_line"))
    empty |= {"library_file": None, "library_line": None}
    named = {"function": None, "shape": "f32[8]{0}", "value": "add.1", "is_guess": False}
    path = told.pop("scope", None)
    paths = {"module_path": path, "fold": told.pop("fold", path)}
    return {**empty, **named, **paths, "kind": "temps", "counted_bytes": size, **told}


def argument(name, size=8):
    return buffer(size, kind="arguments", role="weight", op_name=name)


def walk(owner):
    yield owner
    for child in owner.children:
        yield from walk(child)


def outline(owner):
    """The tree's names, nested."""
    return {child.name: outline(child) for child in owner.children}


@settings(max_examples=rounds(50))
@given(BUFFERS)
def test_nothing_is_lost_and_children_add_up(buffers):
    sizes = sorted(row["counted_bytes"] for row in buffers)
    for by in PATHS:
        tree = owner_tree(buffers, by)
        assert (tree.size_bytes, tree.buffers) == (sum(sizes), len(buffers))
        leaves = [owner for owner in walk(tree) if not owner.children and owner is not tree]
        assert sorted(owner.size_bytes for owner in leaves) == sizes
        for owner in walk(tree):
            assert owner.name
            if owner.children:
                assert owner.size_bytes == sum(child.size_bytes for child in owner.children)


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


def test_repeated_layers_are_one_owner_that_can_be_unfolded():
    paths = [f"net/block_{layer}/{part}" for layer in (0, 1, 10) for part in ("attn", "norm_0")]
    found = [
        buffer(9, scope=path, fold=fold, operation="dot", value=f"dot.{place}")
        for place, (path, fold) in enumerate(zip(paths, folds(paths), strict=True))
    ]
    by_layer = owner_tree(found, "scope", unfold=True)
    (net,) = owner_tree(found, "scope").children
    assert net.name == "net / block_{0..10} \N{MULTIPLICATION SIGN}3"
    assert [(part.name, part.size_bytes) for part in net.children] == [
        ("attn / dot", 27),
        ("norm_0 / dot", 27),
    ]
    assert [layer.name for layer in by_layer.children[0].children] == [
        "block_0",
        "block_1",
        "block_10",
    ]


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


def test_a_deep_or_strange_name_is_a_name_and_ends_somewhere():
    name = "p" + "['x']" * 150 + "]["
    assert list(walk(owner_tree([argument(name)], "scope")))[-1].name.endswith(name)
    deep = "very long/" * 5000
    for by in PATHS:
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
        leaves = [owner.size_bytes for owner in walk(tree) if not owner.children]
        assert (tree.size_bytes, tree.buffers) == (sum(leaves), 5)
