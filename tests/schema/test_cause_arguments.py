"""What is told of arguments: which changed how, which are new or gone, which are donated."""

from ..support.causes import MIB, leaf, side, told


def layers(*names, shape="f32[8,4]", **known):
    return [leaf(name, shape, number, **known) for number, name in enumerate(names)]


def test_a_larger_batch_names_the_arguments_of_one_shape():
    a = side([leaf("x", "s32[4,1024]"), leaf("y", "s32[4,1024]", 1)])
    b = side([leaf("x", "s32[6,1024]"), leaf("y", "s32[6,1024]", 1)])
    assert told(a, b) == ["x, y: s32[4,1024] → s32[6,1024]"]


def test_one_size_in_many_arguments_is_one_change():
    """The largest argument is shown, whatever place the size has in the others' shapes."""
    a = side([leaf("x", "f32[4,8]", size=1), leaf("y", "f32[4]", 1), leaf("z", "f32[2,4]", 2)])
    b = side([leaf("x", "f32[6,8]", size=9), leaf("y", "f32[6]", 1), leaf("z", "f32[2,6]", 2)])
    assert told(a, b) == ["y: f32[4] → f32[6] and 2 more"]


def test_another_type_names_what_the_arguments_share():
    names = [f"cache[{layer}][{part}]" for layer in range(2) for part in range(2)]
    a, b = side(layers(*names, shape="bf16[8]")), side(layers(*names, shape="s8[8]"))
    assert told(a, b) == ["cache: bf16 → s8 in 4 arguments"]


def test_two_changes_are_two_phrases_the_most_bytes_first():
    a = side([leaf("x", "s32[4]", size=9), leaf("w", "f32[8]", 1, size=99 * MIB)])
    b = side([leaf("x", "s32[6]", size=9), leaf("w", "bf16[8]", 1, size=99 * MIB)])
    assert told(a, b) == ["w: f32[8] → bf16[8]", "x: s32[4] → s32[6]"]


def test_new_and_gone_arguments_are_named_with_their_bytes():
    momentum = layers("v['w']", "v['b']")
    assert told(side(momentum), side()) == ["2 arguments gone: v"]
    assert told(side(), side(momentum)) == ["2 new arguments: v"]
    assert told(side(), side([leaf("rng", "u32[2]")])) == ["new argument rng: u32[2]"]


def test_unscanned_layers_that_are_scanned_are_regrouped():
    """Telling them as new would be wrong: the bytes are the same."""
    a = side(layers("p[0]['w']", "p[1]['w']", "p[2]['w']"))
    b = side([leaf("p['w']", "f32[3,8,4]", size=3 * MIB)])
    assert told(a, b) == ["arguments regrouped: 4 → 2, same bytes"]


def test_arguments_of_equal_shapes_in_order_are_renamed():
    a, b = side(layers("params['a']", "params['b']")), side(layers("p['a']", "p['b']"))
    assert told(a, b) == ["renamed arguments: params['a'] → p['a'] and 1 more"]


def test_without_names_a_new_argument_does_not_move_the_others():
    a = side([leaf(None, "f32[8]", 0), leaf(None, "f32[9]", 1)])
    b = side([leaf(None, "u32[2]", 0), leaf(None, "f32[8]", 1), leaf(None, "f32[9]", 2)])
    assert told(a, b) == ["new argument argument 0: u32[2]"]


def test_another_sharding_is_told_beside_the_shape():
    a = side([leaf("w", "f32[8,4]", sharding="{devices=[1,2]}")])
    b = side([leaf("w", "f32[4,8]", sharding="{devices=[2,1]}")])
    assert told(a, b) == ["w: f32[8,4] → f32[4,8], sharded otherwise"]


def test_another_sharding_of_the_same_shape_is_told_alone():
    a, b = (side(layers("w", "x", sharding=sharding)) for sharding in ("{a}", "{b}"))
    assert told(a, b) == ["w, x: sharded otherwise"]


def test_another_mesh_is_one_phrase():
    a = side([leaf(f"p[{n}]", f"f32[{n + 8},4]", n, sharding="{a}") for n in range(4)])
    b = side([leaf(f"p[{n}]", f"f32[{n + 4},4]", n, sharding="{b}") for n in range(4)])
    assert told(a, b) == ["p: sharded otherwise in 4 arguments, p[0] f32[8,4] → f32[4,4]"]


def test_more_devices_are_not_another_sharding():
    a = side([leaf("w", "f32[8]", sharding="{devices=[4]}")])
    b = side([leaf("w", "f32[4]", sharding="{devices=[8]}")], num_partitions=8)
    assert told(a, b) == ["4 → 8 partitions", "w: f32[8] → f32[4]"]


def test_lost_donation_is_told_in_bytes_of_whom():
    a = side(layers("p['w']", "p['b']", "m['w']", "x", donated=MIB))
    b = side([*layers("p['w']", "p['b']", "m['w']"), leaf("x", "f32[8,4]", 3, donated=MIB)])
    assert told(a, b) == ["donation lost: 3 MiB of p, m"]


def test_donation_that_only_changes_hands_is_no_cause():
    """XLA exchanges arguments of one shape from one compilation to the next."""
    a = side([leaf("p", "f32[8]", 0, donated=MIB), leaf("m", "f32[8]", 1)])
    b = side([leaf("p", "f32[8]", 0), leaf("m", "f32[8]", 1, donated=MIB)])
    assert told(a, b) == []


def test_donation_of_a_thousandth_of_the_peak_is_the_least_that_is_told():
    a, b = side(layers("x", donated=MIB // 2)), side(layers("x"))
    assert told(a, b) == []


def test_results_are_told_where_no_argument_changed():
    a, b = side(results=[leaf(None, "f32[8]")]), side(results=[leaf(None, "bf16[8]")])
    assert told(a, b) == ["result: f32[8] → bf16[8]"]
    a, b = (
        side([leaf("x", f"f32[{size}]")], results=[leaf(None, f"f32[{size}]")]) for size in (4, 6)
    )
    assert told(a, b) == ["x: f32[4] → f32[6]"]


def test_results_in_another_order_are_no_cause():
    """Where an argument of a dict is renamed, its result stands in another place."""
    a, b = ([leaf(None, f"f32[{size}]") for size in sizes] for sizes in ((4, 8), (8, 4)))
    assert told(side(results=a), side(results=b)) == []


def test_renamed_arguments_of_the_same_program_are_told():
    a, b = side(layers("p['a']"), program_id=5), side(layers("p['b']"), program_id=5)
    assert told(a, b) == ["renamed arguments: p['a'] → p['b']"]


def test_another_layout_of_an_argument_is_told():
    a = side([leaf("x", "f32[8,4]", layout="f32[8,4]{1,0}")])
    b = side([leaf("x", "f32[8,4]", layout="f32[8,4]{0,1}")])
    assert told(a, b) == ["layout of x: {1,0} → {0,1}"]
