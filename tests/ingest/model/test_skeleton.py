"""Programs of one skeleton have the same arguments, of other sizes and types."""

from memhouse.ingest.readers.hlo_text import EntryParameter, entry_shapes
from memhouse.xla.program_id import skeleton_id_of

from ...support.history import dicts


def skeleton(signature, *names):
    parameters = {number: EntryParameter(name) for number, name in enumerate(names)}
    return skeleton_id_of(entry_shapes(signature, parameters))


STEP = skeleton("(f32[4,8]{1,0}, s32[])->f32[]", "p['w']", "step")


def test_sizes_types_and_results_do_not_matter():
    assert (
        skeleton("(bf16[16,8]{0,1:T(8,128)}, s64[])->(f32[], f32[2]{0})", "p['w']", "step") == STEP
    )


def test_names_ranks_and_order_do():
    others = [
        skeleton("(f32[4,8]{1,0}, s32[])->f32[]", "p['v']", "step"),
        skeleton("(f32[4,8]{1,0}, s32[])->f32[]", "p['w']"),
        skeleton("(f32[4,8,1]{2,1,0}, s32[])->f32[]", "p['w']", "step"),
        skeleton("(f32[4,8]{1,0}, s32[1]{0})->f32[]", "p['w']", "step"),
        skeleton("(f32[4,8]{1,0})->f32[]", "p['w']"),
        skeleton("(s32[], f32[4,8]{1,0})->f32[]", "step", "p['w']"),
        skeleton("((f32[4,8]{1,0}, s32[]))->f32[]", "p['w']"),
    ]
    assert len({STEP, *others}) == 1 + len(others)


def test_without_names_there_is_no_skeleton():
    """Nameless arguments are equal by chance."""
    assert skeleton("(f32[4,8]{1,0}, s32[])->f32[]") is None
    assert skeleton("()->f32[]") is None
    assert skeleton_id_of(None) is None


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
