"""What is told of the program itself, and what is left out as a consequence."""

from memhouse.schema.causes.sides import Flag

from ..support.causes import MIB, leaf, side, told

SAME = {"program_shapes": {"": 7}, "program_layouts": {"": 7}, "program_order": {"": 7}}


def remat(recomputed: int, forward: int = 8) -> dict[str, dict[str, int]]:
    """Matrix products that are computed again, and of the forward pass."""
    return {
        "recomputed": {"": 100, "dot_general": recomputed},
        "forward": {"": 200, "dot_general": forward},
    }


# -- Rematerialisation and what is saved ---------------------------------------------------


def test_checkpointing_that_comes_or_goes_is_told():
    none, full = side(), side(traits=remat(8))
    assert told(none, full) == ["rematerialised now (jax.checkpoint)"]
    assert told(full, none) == ["no longer rematerialised (jax.checkpoint)"]


def test_the_work_of_what_is_recomputed_is_told_where_nothing_else_changes_it():
    x, y = [leaf("x", "f32[4]")], [leaf("x", "f32[6]")]
    less = side(x, flops=1000, traits={"recomputed": {"": 1}})
    more = side(x, flops=1210, traits=remat(8))
    assert told(side(x, flops=1000), more) == ["rematerialised now (jax.checkpoint, +21 % work)"]
    assert told(more, less) == [
        "checkpoint policy: dot_general no longer recomputed (-17 % work)",
    ]
    clones = side(x, flops=1670, traits={"clones": {"": 10}})
    assert told(side(x, flops=1000), clones) == ["XLA recomputes 10 instructions now, +67 % work"]
    for unknown in (
        side(y, flops=1210, traits=remat(8)),
        side(x, flops=1005, traits=remat(8)),
        side(x, flops=1210, unknown_loops=1, traits=remat(8)),
    ):
        assert not any("work" in phrase for phrase in told(side(x, flops=1000), unknown))


def test_another_policy_is_told_by_what_it_recomputes():
    full, dots, few = (side(traits=remat(count)) for count in (8, 1, 4))
    assert told(full, dots) == ["checkpoint policy: dot_general no longer recomputed"]
    assert told(dots, full) == ["checkpoint policy: dot_general recomputed now"]
    assert told(full, few) == ["checkpoint policy: dot_general recomputed less"]


def test_more_layers_are_no_other_policy():
    assert told(side(traits=remat(8, 8)), side(traits=remat(24, 24))) == []


def test_two_causes_at_once_are_two_phrases():
    a, b = side([leaf("x", "f32[4]")], traits=remat(8)), side([leaf("x", "f32[6]")])
    assert told(a, b) == ["x: f32[4] → f32[6]", "no longer rematerialised (jax.checkpoint)"]


def test_with_the_same_instructions_everything_else_is_a_consequence():
    a = side([leaf("x", "f32[4]", donated=MIB)], traits=SAME)
    b = side([leaf("x", "f32[4]")], traits=SAME | remat(8))
    assert told(a, b) == ["donation lost: 1 MiB of x"]


def test_what_xla_recomputes_itself_is_told_from_many_instructions_on():
    none, few, many = (side(traits={"clones": {"": count}}) for count in (0, 10, 20))
    assert told(none, few) == ["XLA recomputes 10 instructions now"]
    assert told(few, many) == ["XLA recomputes 10 → 20 instructions"]
    assert told(many, none) == ["XLA no longer recomputes"]
    assert told(few, side(traits={"clones": {"": 12}})) == []


def test_layers_that_are_no_longer_scanned_are_told_by_their_loops():
    a, b = side(traits={"loops": {"": 2}}), side()
    assert told(a, b) == ["2 loops unrolled (while)"]
    assert told(b, a) == ["2 loops now (while)"]


# -- Types, collectives, packing, schedule -------------------------------------------------


def test_another_type_inside_is_told_by_what_is_computed():
    f32 = side(traits={"computed": {"f32": 90, "s32": 10}})
    bf16 = side(traits={"computed": {"bf16": 90, "s32": 10}})
    both = side(traits={"computed": {"bf16": 45, "f32": 45, "pred": 10}})
    assert told(f32, bf16) == ["computes in bf16, no longer in f32"]
    assert told(f32, both) == ["computes in bf16 now"]
    assert told(both, f32) == ["no longer computes in bf16"]


def test_types_that_a_policy_brings_are_a_consequence():
    a = side(traits={"computed": {"f32": 90}} | remat(8))
    b = side(traits={"computed": {"f32": 45, "bf16": 45}})
    assert told(a, b) == ["no longer rematerialised (jax.checkpoint)"]


def test_a_compiler_that_keeps_copies_in_another_type_hides_no_change():
    """A TPU keeps copies of operands in bf16, so only the products tell that all is bf16."""
    f32 = side(traits={"computed": {"f32": 83, "bf16": 17}, "product": {"f32": 5, "bf16": 2}})
    bf16 = side(traits={"computed": {"f32": 46, "bf16": 54}, "product": {"bf16": 7}})
    assert told(f32, bf16) == ["computes in bf16, no longer in f32"]
    assert told(bf16, f32) == ["computes in f32 now"]


def test_packing_is_told_where_the_peak_does_not_say_it():
    worse = side(fragmentation_bytes=226 * MIB, total_bytes=1126 * MIB)
    assert told(side(), worse) == ["packing: +126 MiB above the same bound"]
    # The peak fell by what packing lost: the total is the same.
    same = side(fragmentation_bytes=127 * MIB, peak_bytes=873 * MIB)
    assert told(side(), same) == []


def test_the_same_instructions_in_another_order_are_told_beside_the_flag():
    a = side(traits=SAME)
    b = side(traits=SAME | {"program_order": {"": 8}})
    flag = Flag("xla_tpu_enable_latency_hiding_scheduler", "true", "false")
    assert told(a, b, flag) == [
        "flag xla_tpu_enable_latency_hiding_scheduler true → false",
        "the same instructions in another order",
    ]


# -- What a user sets besides --------------------------------------------------------------


def test_compiler_and_program_are_both_told():
    b = side(traits=remat(8), compiler="933746096")
    flags = [Flag("a", "0", "1"), Flag("b", "0", "1")]
    assert told(side(), b, *flags) == [
        "compiler 878335365 → 933746096 (2 flags)",
        "rematerialised now (jax.checkpoint)",
    ]


def test_another_device_is_told_and_a_name_in_numbers_is_none():
    assert told(side(), side(device_kind="TPU v6e")) == ["device TPU v5e → TPU v6e"]
    assert told(side(), side(device_kind="2093c6a02 lite")) == []


def test_a_renamed_module_is_told_where_it_is_known_to_be_the_same():
    same = side(module_name="jit_train", workload="llama2")
    assert told(side(), same) == ["renamed from llama/jit_step"]
    other = side(module_name="jit_train", entry_signature="()", skeleton_id=2)
    assert told(side(), other) == []


def test_estimates_are_not_held_against_figures():
    estimated = side(traits=remat(8), origin="estimated", grade=1)
    assert told(side(traits=remat(8)), estimated) == ["figures are estimated"]


# -- If nothing else is to be said ---------------------------------------------------------


def test_collectives_that_are_new_are_told_before_other_instructions():
    a = side(traits={"collectives": {"": 1}, "operation": {"add": 9}})
    there = {"add": 9, "collective-permute-start": 3, "collective-permute-done": 3}
    b = side(traits={"collectives": {"": 2}, "operation": there})
    assert told(a, b) == ["collective-permute: 0 → 3 instructions"]


def test_else_the_instructions_are_counted():
    a = side(traits={"operation": {"add": 10, "copy": 4}})
    b = side(traits={"operation": {"add": 13, "copy": 3}})
    assert told(a, b) == ["+3/-1 instructions"]


def test_the_same_program_has_no_cause():
    assert told(side(program_id=5), side(program_id=5, traits=remat(8))) == []
