"""Advice on donation, against the programs that were recompiled with donated arguments."""

import pytest

from memhouse.queries.advising.asked_program import read_program
from memhouse.queries.advising.circles import in_circles
from memhouse.queries.advising.copied_donations import copied_donations
from memhouse.queries.advising.donation import donate
from memhouse.queries.advising.finding import Grade
from memhouse.queries.advising.foreseen_copies import Foresight
from memhouse.queries.advising.jax_pairing import free_arrays, pair_up, top_level
from memhouse.queries.advising.not_donated import not_donated
from memhouse.queries.advising.space_layout import read_layout
from memhouse.queries.advising.unused_donations import unused_donations

from ..support.donation_pairs import fill_pairs, program
from ..support.warehouse import reading, rows

MB = 10**6


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """The warehouse, and the pairs of programs in it."""
    return fill_pairs(tmp_path_factory.mktemp("pairs"))


def donated(program_, numbers):
    """What becomes of the arguments with these numbers, if they are donated."""
    arguments, outputs = free_arrays(program_)
    chosen = [each for each in arguments if each.parameter_number in numbers]
    return Foresight(program_).foresee(pair_up(chosen, outputs, 1))


def findings(pairs, name, finder=not_donated, after=False):
    db, all_pairs = pairs
    with program(db, *all_pairs[name][after]) as found:
        return finder(found)


def peaks(pairs, name):
    """The real peaks before and after."""
    db, all_pairs = pairs
    for side in all_pairs[name][:2]:
        with program(db, *side) as found:
            yield found.layout.peak_bytes


# --- what donating brings ---------------------------------------------------------------


def test_outputs_are_paired_as_jax_pairs_them(pairs):
    db, all_pairs = pairs
    assert len(all_pairs) == 39
    for name, (before, _, jax) in all_pairs.items():
        with program(db, *before) as found:
            aliases = {
                each.pair.output.index: each.pair.argument.parameter_number
                for each in donated(found, jax["donated"])
            }
        assert aliases == jax["aliases"], name


def test_the_real_peak_lies_where_it_is_told(pairs):
    """Within the range, give and take 0.02 %; without foreseen copies the range is a point."""
    db, all_pairs = pairs
    points = 0
    for name, (before, _, jax) in all_pairs.items():
        with program(db, *before) as found:
            foreseen = donated(found, jax["donated"])
            told = donate(found, foreseen)
        peak, real = peaks(pairs, name)
        slack = 0.0002 * real
        assert peak - told.most_bytes - slack <= real <= peak - told.least_bytes + slack, name
        points += told.most_bytes == told.least_bytes
    assert points >= 19


def test_copies_are_foreseen(pairs):
    """XLA copies of the program after exactly the arguments that are foreseen before."""
    db, all_pairs = pairs
    copied = {}
    for workload, module, number in rows(
        db,
        "SELECT workload, module_name, parameter_number FROM wasted_donations "
        "INNER JOIN dumps USING (module_id) WHERE why = 'copied' AND memory_space = 0",
    ):
        copied.setdefault((workload, module), set()).add(number)
    tried = 0
    for name, (before, after, jax) in all_pairs.items():
        with program(db, *before) as found:
            foreseen = {
                each.pair.argument.parameter_number
                for each in donated(found, jax["donated"])
                if each.is_copied
            }
        if name != "tpu/small_cache_scanned_over":
            assert foreseen == copied.get(after, set()), name
            tried += bool(foreseen)
    assert tried == 20


def test_what_waits_in_a_circle():
    """0 and 1 wait for each other; 2 waits for them and for 3, which waits for nothing."""
    assert in_circles([0b0010, 0b0001, 0b1011, 0b0000], [0, 1, 2, 3]) == [0, 1]
    assert in_circles([0b0010, 0b0001, 0b1011, 0b0000], [1, 2, 3]) == []


# --- not donated ------------------------------------------------------------------------


def test_a_state_is_donated_as_one(history):
    """Of the night that did not donate: donating saves what the night before saved."""
    with reading(history) as store:
        (row,) = store.rows(
            "SELECT dump_id, module_id FROM dumps "
            "WHERE workload = 'llama-v5e' AND run_id = '2026-10-08'"
        ).to_pylist()
        layout = read_layout(store, row["module_id"])
        assert layout is not None
        (found,) = not_donated(read_program(store, row["module_id"], row["dump_id"], layout))
    ((donating,),) = rows(
        history,
        "SELECT peak_bytes FROM peaks "
        "WHERE workload = 'llama-v5e' AND run_id = '2026-10-07' AND memory_space = 0",
    )
    assert found.title == "donate p, m and v: outputs could take their 131.90 MiB"
    assert found.write == (
        "donate_argnames=('p', 'm', 'v') in jax.jit, or their places in donate_argnums"
    )
    assert found.source == "/train/zoo/zoo.py:52"
    assert (found.grade, found.tolerance) == (Grade.expected, 0.01)
    assert found.why.endswith("alone: p 11.67 MiB, m 49.10 MiB, v 44.54 MiB")
    assert layout.peak_bytes - found.saving_bytes == pytest.approx(donating, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("state['w']", "state"),
        ("state.params[0]", "state"),
        ("x", "x"),
        ("args[1]['w']", "args[1]"),
        ("kwargs['cache'][0]", "kwargs['cache']"),
        (None, "argument 7"),
    ],
)
def test_the_argument_of_an_array(name, argument):
    assert top_level(name, 7) == argument


def test_without_copies_a_cpu_program_is_told_exactly(pairs):
    """The loop's temps lie in the memory of the output, and move along."""
    (found,) = findings(pairs, "cpu/decode_in_fori")
    peak, real = peaks(pairs, "cpu/decode_in_fori")
    assert found.grade is Grade.exact
    assert found.write == ("if nobody reads the old value again: donate_argnums=(1,) in jax.jit")
    assert peak - found.saving_bytes == real


def test_a_scanned_cache_has_to_be_carried(pairs):
    """Donating alone brings nothing on a TPU, and carrying saves at most what is told."""
    found = findings(pairs, "tpu/cache_scanned_over")
    peak, donated_ = peaks(pairs, "tpu/cache_scanned_over")
    _, carried = peaks(pairs, "tpu/cache_carried_by_scan")
    assert peak == donated_
    assert {each.grade for each in found} == {Grade.at_most}
    assert peak - carried == pytest.approx(805 * MB, rel=0.01)
    assert sum(each.saving_bytes for each in found) == 2 * (1 << 29)
    assert found[0].title == (
        "carry arguments[1] through the loop and donate it: donating alone brings nothing"
    )
    assert found[0].write.startswith("carry it through the loop instead of taking it in as xs")
    assert found[0].source == "/train/benchmarks/pairs/decoding.py:93"


def test_of_two_that_are_swapped_a_tpu_copies_one(pairs):
    (found,) = findings(pairs, "tpu/players_swap")
    peak, real = peaks(pairs, "tpu/players_swap")
    assert found.write.endswith(": donate_argnums=(0,) in jax.jit")
    assert peak - found.saving_bytes == real


def test_an_input_that_only_fits_is_told_as_such(pairs):
    """A matrix product's operand has the shape of the product, which is not its next value."""
    (found,) = findings(pairs, "cpu/old_value_read")
    assert found.kind == "input that fits an output"
    assert (found.grade, found.saving_bytes) == (Grade.fact, None)
    assert found.high_bytes == 1 << 28


def test_donated_programs_have_nothing_to_donate(pairs):
    for name in pairs[1]:
        assert findings(pairs, name, after=True) == [], name


# --- donated for nothing ----------------------------------------------------------------


def test_what_is_copied_although_donated(pairs):
    found = findings(pairs, "tpu/cache_scanned_over", copied_donations, after=True)
    assert [each.title for each in found] == [
        f"arguments[{number}] is donated, but XLA copies 512.00 MiB of it all the same"
        for number in (1, 2)
    ]
    assert {each.source for each in found} == {"/train/benchmarks/pairs/decoding.py:93"}
    (found,) = findings(pairs, "cpu/read_after", copied_donations, after=True)
    assert found.why.startswith("ynn_fusion reads args[0] and may run after the output is written")
    assert found.write.startswith("compute what needs the old args[0] before the new one")


def test_copies_beside_the_peak_are_not_told(pairs):
    """The copies of the two tables are no larger than the batch that is there at the peak."""
    for name in ("tpu/embedding_with_moments", "tpu/average_of_weights", "cpu/decode_in_fori"):
        assert findings(pairs, name, copied_donations, after=True) == [], name


def test_the_nearest_output_of_another_type(pairs):
    (found,) = findings(pairs, "cpu/types_differ", unused_donations, after=True)
    assert (found.grade, found.saving_bytes) == (Grade.fact, None)
    assert found.title == "arguments[0] is donated, but no output takes 256.00 MiB of it"
    assert found.why == (
        "arguments[0] is f32[8192,8192]; the nearest output, {0}, is s8[8192,8192]: another type"
    )


def test_an_output_that_comes_back_sharded_otherwise(filled, monkeypatch):
    """Of `n1` a device takes [2,1024] in, and gives [2,512] out."""
    monkeypatch.setattr("memhouse.queries.advising.unused_donations._WORTH", 0)
    with program(filled, "llama-v5e", "jit_train_step") as found:
        told = {each.title: each for each in unused_donations(found)}
    finding = told["m is donated, but no output takes 16.00 KiB of it"]
    assert finding.why.endswith("another sharding, as a device has another part of it")
    assert "out_shardings" in finding.write
