"""The opcodes that work element by element: XLA's HloInstruction::IsElementwise.

Such an instruction may write its result over an operand of the same shape: it reads each
element before it writes that element.
"""

_TEXT = """
    abs acos acosh add and asin asinh atan2 atanh bitcast-convert cbrt ceil clamp compare complex
    convert copy cos cosh cosine count-leading-zeros divide erf exponential exponential-minus-one
    floor imag is-finite log log-plus-one logistic map maximum minimum mulhi multiply negate not or
    popcnt power real reduce-precision remainder rng round-nearest-afz round-nearest-even rsqrt
    select shift-left shift-right-arithmetic shift-right-logical sign sine sinh sqrt
    stochastic-convert subtract tan tanh xor
"""
ELEMENTWISE = tuple(_TEXT.split())
