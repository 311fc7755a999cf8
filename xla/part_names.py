"""The words by which parts of two programs are compared; numpy is not needed to read them."""

import re

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
