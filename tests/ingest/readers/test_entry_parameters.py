"""What the entry computation's parameters are called, and how they are sharded."""

from memhouse.ingest.readers.hlo_text import read_hlo_text
from memhouse.ingest.readers.lines import split_lines


def arguments(shapes, *lines, computation=""):
    """The `entry_shapes` of the arguments of a module with these shapes and parameter lines."""
    layout = f"({', '.join(shapes)})->f32[]"
    body = "\n".join([*lines, "ROOT %r = f32[] constant(0)"])
    text = f"HloModule m, entry_computation_layout={{{layout}}}\n\n{computation}\n"
    text += f"ENTRY %e () -> f32[] {{\n  {body.replace(chr(10), chr(10) + '  ')}\n}}\n"
    entry_shapes = read_hlo_text(split_lines(text.encode())).entry_shapes
    return [row for row in entry_shapes if not row.is_output]


def named(*found):
    return [(row.shape_index, row.argument_name, row.sharding) for row in found]


def test_a_parameter_has_its_name_and_sharding():
    found = arguments(
        ["f32[4,8]{1,0}", "s32[]"],
        # XLA may print a later parameter first.
        "%t = s32[] parameter(1)",
        "%p = f32[4,8]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}, "
        "metadata={op_name=\"p[\\'w\\']\"}",
    )
    assert named(*found) == [
        ("{}", "p['w']", "{devices=[2,1]<=[2]}"),
        ("{}", None, None),
    ]


def test_text_in_quotes_is_no_sharding():
    (found,) = arguments(
        ["f32[2]{0}"], '%p = f32[2]{0} parameter(0), metadata={op_name="a, sharding={replicated}"}'
    )
    assert found.sharding is None


def test_each_array_of_a_tuple_has_its_sharding():
    found = arguments(
        ["(f32[4]{0}, (s32[], f32[2]{0}))"],
        "%p = (f32[4]{0}, (s32[], f32[2]{0})) parameter(0), sharding={{devices=[2]<=[2]}, "
        '{replicated}, {devices=[1,2]<=[2] last_tile_dims={manual}}}, metadata={op_name="args"}',
    )
    assert named(*found) == [
        ("{0}", "args", "{devices=[2]<=[2]}"),
        ("{1,0}", "args", "{replicated}"),
        ("{1,1}", "args", "{devices=[1,2]<=[2] last_tile_dims={manual}}"),
    ]


def test_parameters_of_other_computations_are_no_arguments():
    line = 'ROOT %a = f32[2]{0} parameter(0), metadata={op_name="a"}'
    inner = f"%f (a: f32[2]) -> f32[2] {{\n  {line}\n}}\n"
    (found,) = arguments(["f32[2]{0}"], "%p = f32[2]{0} parameter(0)", computation=inner)
    assert found.argument_name is None
