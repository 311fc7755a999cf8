"""The role of each value in a training step or an inference: weight, activation, gradient, …

The roles follow from structure: from the passes that read a value, and from outputs that reuse the
buffers of arguments. Names and types decide where the structure leaves it open.
"""

from collections.abc import Iterable
from typing import Final, Literal, get_args

from .arguments import Argument, find_arguments
from .named_program import GATHERS
from .passes import BACKWARD, OPTIMIZER
from .program import NONE
from .reads import OwnedValues

Role = Literal[
    "weight",
    "optimizer state",
    "state",
    "input",
    "gathered weight",
    "activation",
    "gradient",
    "output",
    "constant",
    "workspace",
]
ROLES: Final[tuple[Role, ...]] = get_args(Role)


def find_roles(owned: OwnedValues, residual: list[int]) -> tuple[list[Role | None], bool]:
    """The role of each value, None for a tuple's table; and whether the program trains.

    Only a program that trains has gradients and activations.

    Args:
        residual: by value, its index among the residuals, or NONE.
    """
    named, flow = owned.named, owned.named.flow
    alias_set = owned.analysis.liveness.alias_set
    argument_roles, trains = find_argument_roles(*find_arguments(owned))
    live_out = owned.analysis.live_out_values()
    gradients = _sets_read_by_optimizer(owned) if trains else set()
    roles: list[Role | None] = []
    for value, row in enumerate(flow.row):
        role: Role | None = "workspace"
        if owned.values.array[value] is None:
            role = None
        elif named.is_argument[row]:
            role = argument_roles[row]
        elif value in live_out:
            role = "output"
        elif named.program.opcode[row] == "constant":
            role = "constant"
        elif argument_roles.get(owned.owners.row[value]) == "weight" and _is_gathered(owned, value):
            role = "gathered weight"
        elif trains and residual[value] != NONE:
            role = "activation"
        elif owned.value_pass[value] == BACKWARD and alias_set[value] in gradients:
            role = "gradient"
        roles.append(role)
    return roles, trains


def _is_gathered(owned: OwnedValues, value: int) -> bool:
    """Whether a value has parts of its owner that other devices store."""
    named = owned.named
    is_larger = owned.values.elements[value] > named.elements[owned.owners.row[value]]
    return is_larger or named.program.opcode[named.flow.row[value]] in GATHERS


def _sets_read_by_optimizer(owned: OwnedValues) -> set[int]:
    """The alias sets with a value of the backward pass that the optimizer reads."""
    # XLA fuses the optimizer's work with backward work, so that the reader inside decides.
    return {
        owned.analysis.liveness.alias_set[read.value]
        for read in owned.reads
        if owned.value_pass[read.value] == BACKWARD
        and owned.passes.by_row[owned.readers.inner_reader(read.user, read.operand_number)]
        == OPTIMIZER
    }


def find_argument_roles(
    arguments: dict[int, Argument], returns_gradients: bool
) -> tuple[dict[int, Role], bool]:
    """The role of each argument by row, and whether the program is training or a part of it.

    A program trains if an output that depends on a gradient replaces an argument that the
    differentiated code reads, and if the names of such arguments are those of weights or of
    optimizer state, or the model also reads data: an input array. Forces and scores replace the
    state of a simulation, and there are no data. A program that returns gradients and replaces
    nothing counts as a part of training.
    """
    training_roles = _argument_roles(arguments, trains=True)
    has_weight = has_evidence = False
    for row, argument in arguments.items():
        is_weight = training_roles[row] == "weight" and argument.is_differentiated
        has_weight = has_weight or (is_weight and argument.is_trained)
        is_named = argument.is_named_weight or argument.is_named_optimizer
        is_data = training_roles[row] == "input" and argument.is_read_by_model and argument.is_data
        has_evidence = has_evidence or is_data or (is_named and argument.is_trained)
    if has_weight and has_evidence:
        return training_roles, True
    return _argument_roles(arguments, trains=False), returns_gradients


def _argument_roles(arguments: dict[int, Argument], *, trains: bool) -> dict[int, Role]:
    """The role of each argument by row, for a program that trains or one that does not.

    Arguments that are neither replaced nor the optimizer's are frozen weights if they are leaves of
    a container that does not look like a batch, otherwise input.
    """
    roles: dict[int, Role] = {}
    remaining = {}
    for row, argument in arguments.items():
        role = _role_in_training(argument) if trains else _role_without_training(argument)
        if role is None:
            remaining[row] = argument
        else:
            roles[row] = role
    batches = _batches(remaining.values(), by_size=trains)
    for row, argument in remaining.items():
        is_batch = argument.container in batches and not argument.is_named_weight
        roles[row] = "weight" if argument.is_leaf and not is_batch else "input"
    return roles


def _role_in_training(argument: Argument) -> Role | None:
    """The role if the program trains; None for a frozen weight or input.

    An argument that a gradient updates is a weight if the forward or backward pass reads it, and
    optimizer state if only the optimizer does. Other arguments that are replaced are state, but for
    a count of steps, which is the optimizer's.
    """
    is_weight = argument.is_trained and argument.is_read_by_model
    is_count = argument.is_integer and argument.first_dimension is None
    if (
        argument.is_named_optimizer
        or (argument.is_replaced and is_count)
        or (argument.is_trained and not is_weight and argument.is_read_by_optimizer)
    ):
        return "optimizer state"
    # A weight may have no gradient, such as that of a router that only selects.
    if is_weight or (
        argument.is_replaced and argument.is_read_by_model and argument.is_named_weight
    ):
        return "weight"
    return "state" if argument.is_state else None


def _role_without_training(argument: Argument) -> Role | None:
    """The role if the program does not train: state, or None for a weight or input.

    An argument that an output replaces is state, as is a leaf of a container with as many outputs
    of its type and dimensions as arguments: a cache that is not donated.
    """
    is_index = argument.is_integer and argument.first_dimension is not None
    is_cache = argument.is_named_cache and not is_index
    return "state" if argument.is_state or is_cache else None


def _batches(arguments: Iterable[Argument], *, by_size: bool) -> set[str]:
    """The containers of these arguments that look like a batch and are not named after weights.

    A batch contains indices, or with `by_size` only arrays with the same first dimension.
    """
    sizes: dict[str, set[int]] = {}
    batches = set()
    for argument in arguments:
        if not argument.is_named_weight:
            sizes.setdefault(argument.container, set())
            if argument.first_dimension is not None:
                sizes[argument.container].add(argument.first_dimension)
                if argument.is_integer:
                    batches.add(argument.container)
    if by_size:
        batches |= {container for container, first in sizes.items() if len(first) <= 1}
    return batches
