"""How phrases become one line: what is shortened, and what is only counted."""

from memhouse.schema.causes.changes import Phrase, in_order, one_line, signed_size, size

REMAT = Phrase(
    "remat", "checkpoint policy: dot_general recomputed now", "dot_general recomputed now"
)
SAVED = Phrase(
    "saved", "152 MiB less saved for backward (zoo.py:38)", "152 MiB less saved for backward"
)
SHAPE = Phrase("argument", "x, y: s32[4,1024] → s32[6,1024]", "x, y: 4 → 6 in 2 arguments")


def test_phrases_that_fit_are_joined():
    assert one_line([REMAT, SAVED]) == f"{REMAT.text}; {SAVED.text}"
    assert one_line([]) is None


def test_the_longest_phrase_is_shortened_first():
    line = one_line([SHAPE, REMAT, SAVED])
    assert line == f"{SHAPE.text}; {REMAT.short}; {SAVED.short}"


def test_what_still_does_not_fit_is_counted():
    flag = Phrase("flag", "flag xla_tpu_enable_latency_hiding_scheduler true → false")
    line = one_line([SHAPE, flag, REMAT, SAVED])
    assert line == f"{SHAPE.text}; {flag.text}; 2 more"
    assert len(line) < 100


def test_one_phrase_that_is_too_long_is_cut():
    line = one_line([Phrase("argument", "x" * 200), REMAT])
    assert line == f"{'x' * 90}…; 1 more"
    assert len(line) == 99


def test_the_first_phrase_of_each_kind_goes_before_the_second_ones():
    phrases = [SAVED, Phrase("argument", "first"), Phrase("argument", "second"), REMAT]
    assert [phrase.text for phrase in in_order(phrases)] == [
        "first",
        REMAT.text,
        SAVED.text,
        "second",
    ]


def test_a_size_has_three_digits():
    sizes = {
        0: "0 B",
        999: "999 B",
        1000: "0.977 KiB",
        93466624: "89.1 MiB",
        1 << 30: "1 GiB",
        -(126 << 20): "126 MiB",
        2098195456: "1.95 GiB",
    }
    assert {amount: size(amount) for amount in sizes} == sizes


def test_a_signed_size_says_plus_or_minus():
    assert (signed_size(1 << 20), signed_size(-(1 << 20))) == ("+1 MiB", "-1 MiB")
