"""Which fact explains which bytes of the peak; every ledger adds up."""

from memhouse.schema.causes.find_causes import terms_of

from ..support.causes import MIB, leaf, ledger, pair, part, side


def test_what_scales_with_a_batch_is_the_batch():
    def batch(size):
        arguments = [leaf("x", f"s32[{size},512]")]
        exp = part(size, operation="exp")
        flat = part(size, operation="dot", shape=f"f32[{size * 512},512]")
        return side(arguments, parts=[exp, flat, part(7, operation="add")])

    assert ledger(batch(8), batch(12)) == {"x: s32[8,512] → s32[12,512]": 8}


def test_eight_bytes_do_not_explain_75_mib():
    """Dropout off: the key goes, and what goes with the random bits."""
    mask = part(75, "zoo.py:2", operation="lt", owner="net/Dropout_#/jit(_bernoulli)")
    a = side([leaf("key", "u32[2]", size=8)], traits={"random": {"zoo.py:2": 9}}, parts=[mask])
    b = side(parts=[part(4)])
    assert ledger(a, b) == {
        "random bits gone (dropout)": -75,
        "workspace: dot_general f32[4,512,512]": 4,
        "argument key gone: u32[2]": 0,
    }


def layers(count):
    names = [f"{tree}['layer_{n}']['w']" for tree in ("p", "m") for n in range(count)]
    owners = [f"{tree}['layer_#']['w']" for tree in ("p", "m")]
    held = [
        part(count, None, category="argument", pass_="argument", owner=owner, shape="f32[8,4]")
        for owner in owners
    ]
    kept = part(5 * count, owner="net/layer_#", shape="f32[5,512,512]", buffers=count)
    return side([leaf(name, "f32[8,4]", n) for n, name in enumerate(names)], parts=[*held, kept])


def test_a_fifth_layer_is_a_layer_with_all_that_it_holds():
    assert ledger(layers(4), layers(5)) == {"4 → 5 layers (layer_4)": 7}
    assert ledger(layers(5), layers(4)) == {"5 → 4 layers (layer_4)": -7}


def stacked(batch, count):
    owners = ["p['w']", "m['w']", "v['w']"]
    arguments = [leaf(owner, f"f32[{count},8]", n) for n, owner in enumerate(owners)]
    known = {"category": "argument", "pass_": "argument", "role": "weight"}
    held = [part(count, None, owner=owner, shape=f"f32[{count},8]", **known) for owner in owners]
    kept = part(count, shape=f"f32[{count},512,512]")
    at_once = part(batch, operation="exp")
    return side([*arguments, leaf("x", f"s32[{batch}]", 9)], parts=[*held, kept, at_once])


def test_layers_that_are_scanned_are_not_the_batch_that_grew_alike():
    """Both grew by half: the sizes say which is which."""
    assert ledger(stacked(8, 4), stacked(12, 6)) == {
        "4 → 6 layers in 3 arguments": 8,
        "x: s32[8] → s32[12]": 4,
    }


def test_another_optimizer_is_its_state():
    def state(*names):
        known = {"category": "argument", "pass_": "argument", "role": "optimizer state"}
        leaves = [leaf(f"opt.{name}['w']", "f32[8]", n) for n, name in enumerate(names)]
        held = [part(3, None, owner=f"opt.{name}['w']", shape="f32[8]", **known) for name in names]
        return side(leaves, parts=[*held, part(1)])

    assert ledger(state("mu", "nu"), state("trace")) == {"other optimizer: mu, nu → trace": -3}


def test_donation_is_the_outputs_also_where_arguments_are_grouped_otherwise():
    known = {"category": "output", "role": "output", "shape": "f32[8]"}
    a = side([leaf("p", "f32[8]", donated=9 * MIB)], parts=[part(20)])
    for name in ("p", "state['p']"):
        b = side([leaf(name, "f32[8]")], parts=[part(20), part(9, "zoo.py:7", **known)])
        told = ledger(a, b)
        assert [term for term in told if told[term]] == ["donation lost: p"]
        assert told["donation lost: p"] == 9


def test_what_a_policy_keeps_is_one_term_with_its_line():
    remat = {"recomputed": {"": 9, "dot_general": 9}, "forward": {"": 9, "dot_general": 9}}
    again = part(4, pass_="rematerialised")
    kept = [part(40, f"zoo.py:{n}", role="activation", operation=f"op{n}") for n in (1, 2)]
    a, b = side(traits=remat, parts=[again, part(2)]), side(parts=[*kept, part(2)])
    assert ledger(a, b) == {"no longer rematerialised (jax.checkpoint)": 76}


def test_another_type_is_what_is_computed_in_it():
    a = side(traits={"computed": {"f32": 90}}, parts=[part(8), part(3, None, operation="add")])
    b = side(
        traits={"computed": {"bf16": 90}},
        parts=[part(4, shape="bf16[8,512,512]"), part(3, None, operation="add")],
    )
    assert ledger(a, b) == {"computes in bf16, no longer in f32": -4}


def test_what_no_fact_explains_is_told_by_line_and_small_changes_are_the_remainder():
    a = side(parts=[part(10), part(9, "zoo.py:2", operation="exp")])
    b = side(parts=[part(60), part(10, "zoo.py:2", operation="exp")])
    assert ledger(a, b) == {"workspace: dot_general f32[60,512,512]": 50, "smaller changes": 1}
    (first, _) = terms_of(pair(a, b))
    assert (first.source, first.role) == ("zoo.py:1", "workspace")


def test_what_came_and_went_as_the_peak_moved_is_one_term():
    a = side(
        traits={"peak_at": {"zoo.py:1": 1}},
        parts=[part(64, "zoo.py:1", shape="f32[64]"), part(10, operation="add")],
    )
    b = side(
        traits={"peak_at": {"zoo.py:2": 1}},
        parts=[part(62, "zoo.py:2", shape="f32[62]", operation="exp"), part(10, operation="add")],
    )
    assert ledger(a, b) == {"the peak is at zoo.py:2, was at zoo.py:1": -2}


def test_what_runs_at_another_moment_scales_with_the_batch_too():
    """Backward workspace went, and forward workspace came, half as much again."""
    a = side(
        [leaf("x", "s32[16,512]")],
        traits={"peak_at": {"zoo.py:1": 1}},
        parts=[part(16, "zoo.py:1", shape="f32[8192,9]"), part(4, operation="add")],
    )
    b = side(
        [leaf("x", "s32[24,512]")],
        traits={"peak_at": {"zoo.py:2": 1}},
        parts=[
            part(24, "zoo.py:2", shape="f32[24,512,9]", operation="exp"),
            part(4, operation="add"),
        ],
    )
    assert ledger(a, b) == {"x: s32[16,512] → s32[24,512]": 8}


def test_a_side_without_parts_has_facts_without_bytes():
    a, b = side([leaf("x", "f32[4]")], parts=[part(4)]), side([leaf("x", "f32[6]")])
    assert [(term.text, term.change) for term in terms_of(pair(a, b))] == [
        ("x: f32[4] → f32[6]", None)
    ]
