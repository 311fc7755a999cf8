"""Which arguments are a program's state, of which an output is the next value."""

from collections.abc import Sequence

from ..catalogue import statement
from .asked_program import Program
from .foreseen_copies import Foresight
from .jax_pairing import EntryArray

_STATE = ("weight", "optimizer state", "state")


def state_of(
    program: Program,
    foresight: Foresight,
    arguments: Sequence[EntryArray],
    outputs: Sequence[EntryArray],
) -> set[EntryArray]:
    """The arguments whose next value an output is; the others at most have its shape.

    In a training step these are the weights and the optimizer's state, but for weights of whose
    bytes there are only gradients. Without a backward pass, an output of the same bytes is written
    over the argument, or computed by a loop that reads it. All arrays of an argument that a user
    can name are state if one is.
    """
    if program.trains:
        rows = program.rows(statement("advise_roles")).to_pylist()
        state = {row["value_id"] for row in rows if row["role"] in _STATE}
        gradients = {row["value_id"] for row in rows if row["pass"] == "backward"}
        renewed = {each.padded_bytes for each in outputs if each.value_id not in gradients}
        sure = [
            each for each in arguments if each.value_id in state and each.padded_bytes in renewed
        ]
    else:
        written_over = {
            (value, output.padded_bytes)
            for output in outputs
            for value in foresight.renewed_by(output)
        }
        sure = [each for each in arguments if (each.value_id, each.padded_bytes) in written_over]
    names = {each.top_level for each in sure}
    return {each for each in arguments if each.top_level in names}
