"""Opcodes of a kind, and names without their numbers: plain words, without numpy."""

import re

# XLA's HloInstruction::IsElementwise. Such an instruction may write its result over an operand of
# the same shape: it reads each element before it writes that element.
_ELEMENTWISE = """
    abs acos acosh add and asin asinh atan2 atanh bitcast-convert cbrt ceil clamp compare complex
    convert copy cos cosh cosine count-leading-zeros divide erf exponential exponential-minus-one
    floor imag is-finite log log-plus-one logistic map maximum minimum mulhi multiply negate not or
    popcnt power real reduce-precision remainder rng round-nearest-afz round-nearest-even rsqrt
    select shift-left shift-right-arithmetic shift-right-logical sign sine sinh sqrt
    stochastic-convert subtract tan tanh xor
"""
ELEMENTWISE = tuple(_ELEMENTWISE.split())

# `layer_0`, `layers[1]` and `h2` are one owner; `conv2d` is a name.
NUMBER = r"\d+(_|\b)"
_COLLECTIVE = (
    *("all-gather", "all-reduce", "all-to-all", "ragged-all-to-all", "reduce-scatter"),
    *("collective-permute", "collective-broadcast"),
)
COLLECTIVES = tuple(f"{name}{part}" for name in _COLLECTIVE for part in ("", "-start"))
COLLECTIVE_ENDS = tuple(f"{name}-done" for name in _COLLECTIVE)


def unnumbered(name: str) -> str:
    """An owner's name with # for numbers: `layer_#` for `layer_0`, as in the column owner."""
    return re.sub(NUMBER, r"#\1", name)
