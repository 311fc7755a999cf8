"""Fills: buffers that hold one number everywhere, until something is written into them."""

import numpy as np

from ....schema.address_space.runs import followed
from ..numbered_program import NONE, Ints, Mask
from .fusions import KEEPS_ELEMENTS, Fusions
from .values import Values

_REPEATS = (*KEEPS_ELEMENTS, "broadcast", "copy-start")


def fills(values: Values, fusions: Fusions) -> tuple[Mask, Ints]:
    """Which values are one constant number everywhere, or memory that nothing has written yet.

    And what each fill repeats: the value one step back, itself at the end.
    """
    named = values.named
    program = named.program
    ends = program.opcode.is_one_of("constant") & named.is_scalar
    is_allocation = np.array(
        [text == "AllocateBuffer" for text in program.custom_call_target.texts] + [False], bool
    )
    ends |= is_allocation[program.custom_call_target.codes]
    is_fill = ends[values.row] & values.is_array
    source = np.arange(len(is_fill))
    repeats = values.of(*_REPEATS)
    # The context of a copy holds nothing of what is copied.
    repeats = repeats[~values.is_context[repeats]]
    entering = values.operand(repeats, 0)
    source[repeats] = np.where(entering != NONE, entering, repeats)
    made = values.of("fusion")
    inner = fusions.repeated[fusions.root_of(values, made)]
    is_fill[made] = fusions.is_fill[inner]
    entering = fusions.from_outside(fusions.repeated, fusions.root_of(values, made))
    source[made] = np.where(entering != NONE, entering, made)
    found: Mask = is_fill[followed(source)]
    return found, source
