"""Programs of one skeleton have the same arguments, of other sizes and types."""

from memhouse.xla.program_id import skeleton_id

from ...support.history import dicts
from ...support.hlo import program_of

ARGUMENTS = [("f32[4,8]{1,0}", "p['w']"), ("s32[]", "step")]


def skeleton(arguments, result="f32[]"):
    """The skeleton of a program with these arguments: pairs of a shape and a name or None."""
    shapes = ", ".join(shape for shape, _ in arguments)
    lines = [
        f"  %p.{number} = {shape} parameter({number})"
        + (f', metadata={{op_name="{name}"}}' if name else "")
        for number, (shape, name) in enumerate(arguments)
    ]
    text = f"""HloModule made, entry_computation_layout={{({shapes})->{result}}}

ENTRY %main {{
{chr(10).join(lines)}
  ROOT %r = {result} constant(0)
}}
"""
    return skeleton_id(program_of(text).entry_shapes)


def test_sizes_types_and_results_do_not_matter():
    arguments = [("bf16[16,8]{0,1:T(8,128)}", "p['w']"), ("s64[]", "step")]
    assert skeleton(arguments, "(f32[], f32[2]{0})") == skeleton(ARGUMENTS) is not None


def test_names_ranks_and_order_do():
    weight, step = ARGUMENTS
    skeletons = [
        skeleton(ARGUMENTS),
        skeleton([("f32[4,8]{1,0}", "p['v']"), step]),
        skeleton([weight, ("s32[]", None)]),
        skeleton([("f32[4,8,1]{2,1,0}", "p['w']"), step]),
        skeleton([weight, ("s32[1]{0}", "step")]),
        skeleton([weight]),
        skeleton([step, weight]),
        skeleton([("(f32[4,8]{1,0}, s32[])", "p['w']")]),
    ]
    assert len(set(skeletons)) == len(skeletons)


def test_without_names_there_is_no_skeleton():
    """Nameless arguments are equal by chance."""
    assert skeleton([(shape, None) for shape, _ in ARGUMENTS]) is None
    assert skeleton([]) is None
    assert skeleton_id(None) is None


def test_it_survives_another_batch_type_policy_and_number_of_layers(history):
    found = dicts(
        history,
        "workload, COUNT(DISTINCT skeleton_id) AS skeletons, "
        "COUNT(DISTINCT entry_signature) AS signatures, COUNT(DISTINCT program_id) AS programs",
        "FROM dumps JOIN modules USING (module_id) GROUP BY workload ORDER BY workload",
    )
    assert [tuple(row.values()) for row in found] == [
        ("decode-v5e", 1, 3, 3),
        ("llama-cpu", 1, 1, 2),
        ("llama-v5e", 1, 3, 6),
        ("resnet-h100", 1, 3, 3),
    ]
