"""A small program for each rule that may find an origin."""

import pytest

from memhouse.xla.owners.candidates import RULES

from .attributed import attribution_of, owners_of, residuals_of, roles_of

A, T = "f32[8]{0}", "(f32[8]{0}, f32[8]{0})"


def named(op_name):
    return f', metadata={{op_name="{op_name}"}}'


def program(*entry, before="", header=""):
    lines = "".join(f"  {line}\n" for line in entry)
    return (
        f"HloModule m, is_scheduled=true{header}\n\n{before}\nENTRY %main (x: f32[8]) -> f32[8] "
        f"{{\n  %x = {A} parameter(0){named('x')}\n{lines}}}\n"
    )


def fused(*lines):
    text = "".join(f"  {line}\n" for line in lines)
    return f"%fused (a: f32[8]) -> f32[8] {{\n  %a = {A} parameter(0)\n{text}}}\n"


def turn(*body):
    """A loop of these lines that carries two arrays."""
    return (
        f"%go (c: {T}) -> pred[] {{\n  %c = {T} parameter(0)\n"
        "  ROOT %yes = pred[] constant(true)\n}\n\n"
        f"%turn (b: {T}) -> {T} {{\n  %b = {T} parameter(0)\n"
        f"  %one = {A} get-tuple-element(%b), index=0\n"
        f"  %two = {A} get-tuple-element(%b), index=1\n"
        + "".join(f"  {line}\n" for line in body)
        + "}\n"
    )


LOOP = (
    f"%first = {T} tuple(%start, %x)",
    f"%loop = {T} while(%first), condition=%go, body=%turn" + named("jit(f)/while"),
    f"ROOT %out = {A} get-tuple-element(%loop), index=0",
)
ZERO = "%zero = f32[] constant(0)"
SINE = f"%sine = {A} sine(%x)" + named("jit(f)/sin")
FILL = f"%start = {A} broadcast(%zero), dimensions={{}}"

EXAMPLES = {
    "argument": (program(f"ROOT %y = {A} copy(%x)"), "x", "x"),
    "own": (program(SINE, f"ROOT %y = {A} copy(%sine)"), "sine", "sine"),
    "moved": (
        program(SINE, f"ROOT %y = {A} copy(%sine)" + named("jit(f)/its_reader")),
        "y",
        "sine",
    ),
    "loop": (
        program(
            SINE.replace("%sine", "%start"),
            *LOOP,
            before=turn(
                f"%new = {A} negate(%one)" + named("jit(f)/while/body/neg"),
                f"ROOT %end = {T} tuple(%new, %two)",
            ),
        ),
        "loop",
        "new",
    ),
    "fused": (
        program(
            f"ROOT %y = {A} fusion(%x), kind=kLoop, calls=%fused",
            before=fused(
                f"%inner = {A} exponential(%a)" + named("jit(f)/exp"),
                f"ROOT %b = {A} bitcast(%inner)" + named("jit(f)/its_reader"),
            ),
        ),
        "y",
        "inner",
    ),
    "becomes": (
        program(
            ZERO,
            "%i = s32[] constant(1)",
            SINE,
            FILL,
            f"ROOT %y = {A} scatter(%start, %i, %sine), to_apply=%fused" + named("jit(f)/scatter"),
            before=fused(f"ROOT %b = {A} copy(%a)"),
        ),
        "start",
        "y",
    ),
    "read": (
        program(ZERO, FILL, f"ROOT %y = {A} multiply(%x, %start)" + named("jit(f)/mul")),
        "start",
        "y",
    ),
    "operand": (program(SINE, f"ROOT %y = {A} tan(%sine)"), "y", "sine"),
    "weak": (
        program("ROOT %y = f32[8]{0} iota(), iota_dimension=0" + named("jit(f)/while")),
        "y",
        "y",
    ),
}


def update(start):
    return program(
        start,
        *LOOP,
        before=turn(
            "%at = s32[] constant(0)",
            "%new = f32[1]{0} rng(%at, %at)" + named("jit(f)/while/body/sin"),
            f"%put = {A} dynamic-update-slice(%one, %new, %at)" + named("jit(f)/while/body/put"),
            f"ROOT %end = {T} tuple(%put, %two)",
        ),
    )


STACK = update(f"{ZERO}\n  {FILL}")
# After the loop, the first is what was the second before the last turn.
SWAPPING = program(
    SINE.replace("%sine", "%start"),
    *LOOP,
    before=turn(f"ROOT %end = {T} tuple(%two, %one)"),
)
# A branch that hands its operand on does not compute.
BRANCHES = program(
    "%which = s32[] constant(0)",
    f"ROOT %y = {A} conditional(%which, %x, %x), branch_computations={{%first, %second}}",
    before="".join(
        f"%{name} (p.{name}: f32[8]) -> f32[8] {{\n  %p.{name} = {A} parameter(0)\n"
        f"  ROOT %r.{name} = {A} {opcode}(%p.{name}){named('jit(f)/cond/' + opcode)}\n}}\n\n"
        for name, opcode in (("first", "copy"), ("second", "sine"))
    ),
)
# A gathered slice of a weight is the weight; what is computed of it is not.
GATHERED = program(
    f"%half = bf16[8]{{0}} convert(%x){named('jit(f)/convert_element_type')}",
    f"%other = bf16[8]{{0}} negate(%half){named('jit(f)/neg')}",
    "%y = bf16[16]{0} all-gather(%half)" + named("jit(f)/dot_general"),
    "ROOT %z = bf16[16]{0} all-gather(%other)" + named("jit(f)/dot_general"),
)
# Memory is copied that nothing has written: its owner is who reads it, and the flag has none.
COPIED = program(
    f'%made = {A} custom-call(), custom_call_target="AllocateBuffer"',
    f"%start = ({A}, {A}, u32[]) copy-start(%made)",
    f"ROOT %done = {A} copy-done(%start)" + named("jit(f)/copy"),
)
# Of several results of a fusion each has its own; of several sums over devices each what is summed.
RESULTS = program(
    SINE,
    "%f = (bf16[8]{0}, f32[8]{0}, f32[8]{0}) fusion(%x, %sine), kind=kLoop, calls=%several"
    + named("jit(f)/sub"),
    f"%one = {A} all-reduce(%sine)" + named("jit(f)/psum"),
    f"ROOT %two = {T} all-reduce(%sine, %x)" + named("jit(f)/psum"),
    before=f"""%several (a: f32[8], b: f32[8]) -> (bf16[8], f32[8], f32[8]) {{
  %a = {A} parameter(0)
  %b = {A} parameter(1)
  %mul = {A} multiply(%a, %b){named("jit(f)/mul")}
  %half = bf16[8]{{0}} convert(%mul)
  %sum = {A} add(%mul, %b)
  ROOT %all = (bf16[8]{{0}}, {A}, {A}) tuple(%half, %a, %sum)
}}
""",
)
# What has no name of its own is its largest operand.
JOINED = program(
    f"%small = f32[2]{{0}} parameter(1){named('small')}",
    "ROOT %y = f32[10]{0} concatenate(%small, %x), dimensions={0}" + named("jit(f)/while"),
)
# Nothing names what is copied, so that the name of the copy's reader is the last resort.
UNKNOWN = program(
    f'%made = {A} custom-call(), custom_call_target="f"',
    f"ROOT %y = {A} copy(%made)" + named("jit(f)/its_reader"),
)
# XLA expands the gradient of a maximum over windows with iotas that only its own instructions read.
PLACES = program(
    f"%places = {A} iota(), iota_dimension=0",
    f"%wrapped = {A} fusion(), kind=kLoop, calls=%fused",
    f"%some = {A} add(%places, %wrapped)",
    f"%more = {A} negate(%some)",
    f"ROOT %y = {A} multiply(%x, %more)" + named("jit(f)/select_and_scatter"),
    before=f"%fused () -> f32[8] {{\n  ROOT %inner = {A} iota(), iota_dimension=0\n}}\n",
)
# What the first copy of it is read by, though another copy is read before.
COPIED_PLACES = program(
    f"%places = {A} iota(), iota_dimension=0",
    f"%once = {A} copy(%places)",
    f"%twice = {A} copy(%places)",
    f"%early = {A} negate(%twice)" + named("jit(f)/neg"),
    f"ROOT %y = {A} multiply(%once, %early)" + named("jit(f)/mul"),
)

# Text, value, index; its origin and the rule that finds it.
CASES = [
    *((text, name, (0,) if name == "loop" else (), (owner, rule))
      for rule, (text, name, owner) in EXAMPLES.items()),
    (update(f"%start = {A} copy(%x)"), "loop", (0,), ("x", "loop")),
    (UNKNOWN, "y", (), ("y", "own")),
    (STACK, "loop", (0,), ("new", "loop")),
    (STACK, "start", (), ("new", "becomes")),
    (SWAPPING, "b", (0,), ("start", "loop")),
    (SWAPPING, "b", (1,), ("x", "loop")),
    (SWAPPING, "loop", (0,), ("x", "loop")),
    (BRANCHES, "y", (), ("r.second", "loop")),
    (BRANCHES.replace("copy(%p.first)", "negate(%p.first)"), "y", (), ("r.first", "loop")),
    (GATHERED, "y", (), ("x", "argument")),
    (GATHERED, "z", (), ("z", "own")),
    (COPIED, "start", (0,), ("done", "read")),
    (PLACES, "places", (), ("y", "read")),
    (PLACES, "wrapped", (), ("y", "read")),
    (COPIED_PLACES, "places", (), ("y", "read")),
    (COPIED, "start", (2,), None),
    (RESULTS, "f", (0,), ("mul", "fused")),
    (RESULTS, "f", (1,), ("x", "fused")),
    (RESULTS, "f", (2,), ("mul", "fused")),
    (RESULTS, "one", (), ("one", "own")),
    (RESULTS, "two", (0,), ("sine", "moved")),
    (JOINED, "y", (), ("x", "operand")),
]  # fmt: skip


def test_each_value_has_the_owner_that_its_rule_gives():
    assert EXAMPLES.keys() == set(RULES)
    answers = {text: owners_of(attribution_of(text)) for text in {case[0] for case in CASES}}
    failures = []
    for text, name, index, expected in CASES:
        answer = answers[text][name, index]
        if (answer and answer[:2]) != expected:
            failures.append((text, name, index, answer, expected))
    assert failures == []


def forward_and_backward(*entry):
    """A step that computes `made` forward; these lines read it."""
    return program(
        f"%made = {A} tanh(%x)" + named("jit(f)/jvp()/tanh"),
        f"%loss = {A} negate(%made)" + named("jit(f)/jvp()/neg"),
        f"%slope = {A} negate(%loss)" + named("jit(f)/transpose(jvp())/neg"),
        *entry,
    )


def test_what_is_fetched_back_by_copies_is_saved():
    fast = "f32[8]{0:S(1)}"
    text = forward_and_backward(
        f"%start = ({fast}, {A}, u32[]) copy-start(%made)",
        f"%done = {fast} copy-done(%start)",
        f"ROOT %back = {A} multiply(%done, %slope)" + named("jit(f)/transpose(jvp())/mul"),
    )
    rows = residuals_of(attribution_of(text))
    assert {(*row.values, row.owner, row.reader) for row in rows} == {
        (("made", ()), "made", "back"),
        (("start", (0,)), "made", "back"),
        (("loss", ()), "loss", "slope"),
    }


def test_only_arrays_are_residuals():
    """Also where a kernel puts the table of its results in the place of a residual."""
    text = forward_and_backward(
        f'%call = {T} custom-call(%made), custom_call_target="f", '
        "output_to_operand_aliasing={{}: (0, {})}" + named("jit(f)/jvp()/call"),
        f"%one = {A} get-tuple-element(%call), index=0",
        f"ROOT %back = {A} multiply(%one, %made)" + named("jit(f)/transpose(jvp())/mul"),
    )
    rows = residuals_of(attribution_of(text))
    assert {value for row in rows for value in row.values} == {
        *(("made", ()), ("loss", ()), ("call", (0,)))
    }


@pytest.mark.parametrize("donated", [True, False])
def test_roles_of_a_training_step(donated):
    text = program(
        f"%w = {A} parameter(1)" + named("p['w']").replace("'", "\\'"),
        f"%m = {A} parameter(2)" + named("m['w']").replace("'", "\\'"),
        f"%hidden = {A} multiply(%x, %w)" + named("jit(f)/jvp()/mul"),
        f"%loss = {A} tanh(%hidden)" + named("jit(f)/jvp()/tanh"),
        f"%slope = {A} multiply(%loss, %hidden)" + named("jit(f)/transpose(jvp())/mul"),
        f"%moment = {A} add(%m, %slope)" + named("jit(f)/add"),
        f"%new = {A} subtract(%w, %moment)" + named("jit(f)/sub"),
        f"ROOT %out = {T} tuple(%new, %moment)",
        header=", input_output_alias={ {0}: (1, {}), {1}: (2, {}) }" if donated else "",
    ).replace("%x = f32[8]", "%x = s32[8]")
    found = roles_of(text)
    assert (found["x"], found["w"], found["m"]) == ("input", "weight", "optimizer state")
    assert (found["hidden"], found["slope"]) == ("activation", "gradient")


def test_roles_of_a_decoder():
    text = program(
        f"%w = {A} parameter(1)" + named("p['w']").replace("'", "\\'"),
        f"%cache = {A} parameter(2)" + named("cache[0]"),
        "%i = s32[] parameter(3)" + named("pos"),
        "%key = f32[1]{0} rng(%i, %i)" + named("jit(f)/dot_general"),
        f"ROOT %put = {A} dynamic-update-slice(%cache, %key, %i)" + named("jit(f)/put"),
        header=", input_output_alias={ {}: (2, {}) }",
    )
    found = roles_of(text)
    names = ("x", "w", "cache", "i")
    assert [found[name] for name in names] == ["input", "weight", "state", "input"]


# Weights and moments that outputs replace, data, and lines of differentiated code that reads them.
STEP = (
    f"%w = {A} parameter(1)" + named("w"),
    f"%m = {A} parameter(2)" + named("m"),
    f"%hidden = {A} multiply(%x, %w)" + named("jit(f)/jvp()/mul"),
    f"%slope = {A} multiply(%hidden, %x)" + named("jit(f)/transpose(jvp())/mul"),
)
UPDATE = (
    f"%moment = {A} add(%m, %slope)" + named("jit(f)/add"),
    f"%new = {A} subtract(%w, %moment)" + named("jit(f)/sub"),
)
DONATED = ", input_output_alias={ {0}: (1, {}), {1}: (2, {}) }"


def test_what_a_nameless_gradient_reads_is_input():
    text = program(
        *STEP,
        *UPDATE,
        f"%turned = {A} transpose(%x), dimensions={{0}}",
        "%nameless = f32[]{} dot(%turned, %slope)",
        "%size = f32[]{} sqrt(%nameless)" + named("jit(f)/sqrt"),
        f"ROOT %out = ({A}, {A}, f32[]) tuple(%new, %moment, %size)",
        header=DONATED,
    )
    assert roles_of(text)["x"] == "input"


def test_what_is_replaced_without_a_gradient_is_state():
    """A running mean; and an integer, which is the optimizer's count of steps."""
    text = program(
        *STEP,
        *UPDATE,
        f"%mean = {A} parameter(3)" + named("mean"),
        "%count = s32[] parameter(4)" + named("count"),
        f"%next = {A} add(%mean, %x)" + named("jit(f)/add"),
        "%more = s32[] negate(%count)" + named("jit(f)/add"),
        f"ROOT %out = ({A}, {A}, {A}, s32[]) tuple(%new, %moment, %next, %more)",
        header=DONATED.replace(" }", ", {2}: (3, {}), {3}: (4, {}) }"),
    )
    found = roles_of(text)
    assert [found[name] for name in ("w", "m", "mean", "count")] == [
        "weight",
        "optimizer state",
        "state",
        "optimizer state",
    ]


@pytest.mark.parametrize(("name", "role"), [("w", "state"), ("params", "weight")])
def test_without_data_names_tell_training_from_a_score(name, role):
    """All arguments are replaced, by a step along a gradient."""
    text = program(
        f"%slope = {A} sine(%x)" + named("jit(f)/jvp()/sin"),
        f"%score = {A} negate(%slope)" + named("jit(f)/transpose(jvp())/neg"),
        f"ROOT %new = {A} add(%x, %score)" + named("jit(f)/add"),
        header=", input_output_alias={ {}: (0, {}) }",
    ).replace('op_name="x"', f'op_name="{name}"')
    assert roles_of(text)["x"] == role
    passes = {pass_ for _, _, pass_ in filter(None, owners_of(attribution_of(text)).values())}
    assert ("optimizer" in passes) == (role == "weight")
