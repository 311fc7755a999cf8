"""How phrases become one line: what is shortened, and what is only counted."""

import re

from memhouse.schema.causes.changes import Phrase, in_order, one_line, signed_size, size

from ..support.causes import MIB

REMAT = Phrase(
    "remat",
    "checkpoint policy: dot_general recomputed now",
    "dot_general recomputed now",
    change=-152 * MIB,
    source="zoo.py:38",
)
SHAPE = Phrase(
    "argument",
    "x, y: s32[4,1024] → s32[6,1024]",
    "x, y: 4 → 6 in 2 arguments",
    change=48 * MIB,
)
FLAG = Phrase("flag", "flag xla_tpu_enable_latency_hiding_scheduler true → false")
LINE = Phrase("line", "workspace: exp f32[8,512]", "exp", change=9 * MIB, source="zoo.py:40")
REST = Phrase("remainder", "smaller changes", change=1 << 18)


def test_terms_that_fit_are_joined_with_their_bytes_and_lines():
    assert one_line([REMAT]) == f"{REMAT.text} -152 MiB (zoo.py:38)"
    assert one_line([SHAPE, LINE]) == (
        f"{SHAPE.text} +48 MiB; workspace: exp f32[8,512] +9 MiB (zoo.py:40)"
    )
    assert one_line([]) is None


def test_the_longest_term_is_shortened_first():
    line = one_line([REMAT, SHAPE, REST])
    assert line == f"{REMAT.short} -152 MiB (zoo.py:38); {SHAPE.text} +48 MiB"


def test_what_does_not_fit_is_counted_and_summed():
    line = one_line([FLAG, REMAT, SHAPE, LINE, REST])
    assert line.startswith(f"{FLAG.text}; ")
    assert re.search(r"; \d more [+-][\d.]+ MiB$", line)
    assert len(line) < 100


def test_a_small_remainder_takes_no_room():
    assert one_line([SHAPE, REST]) == f"{SHAPE.text} +48 MiB"


def test_a_term_that_explains_less_than_half_does_not_stand_alone():
    """Even where its line has no room: 30 of 70 MiB."""
    few = Phrase("line", "x" * 55, change=30 * MIB, source="zoo.py:1")
    more = [Phrase("line", "y" * 60, "exp", change=20 * MIB, source=f"zoo.py:{n}") for n in (2, 3)]
    assert one_line([few, *more]) == f"{'x' * 55} +30 MiB; exp +20 MiB; exp +20 MiB"


def test_one_term_that_is_too_long_is_cut():
    line = one_line([Phrase("argument", "x" * 200), REMAT])
    assert line.startswith("xxx")
    assert line.endswith("…; 1 more -152 MiB")
    assert len(line) == 99


def test_what_is_set_stands_first_and_then_the_most_bytes():
    plain = Phrase("schedule", "another schedule")
    phrases = [REST, plain, LINE, SHAPE, REMAT, FLAG]
    assert in_order(phrases) == [FLAG, REMAT, SHAPE, LINE, plain, REST]


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
