"""The arguments of a program: evidence of whether each is a weight, optimizer state or data."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .named_program import COPIES
from .owners.loops import LoopInputs, find_loop_phis
from .passes import BACKWARD, FORWARD, OPTIMIZER, REMATERIALISED
from .program import NONE
from .reads import OwnedValues
from .shapes import ArrayShape

# JAX's name for an array argument of a function with `*args`.
_STARRED: Final = re.compile(r"args\[\d+\]")
_CONTAINER: Final = re.compile(r"(?:args|kwargs)\[[^]]*\]|\w+")
_NAMED_WEIGHT: Final = re.compile(
    r"^weights?\b|\b(?:\w+_)?(?:params?|parameters?)\b"
    r"|\b(?:frozen|teacher|model|kernel|bias|embedding)\b"
)
_NAMED_OPTIMIZER: Final = re.compile(r"\b(?:opt|optim|optimizer)(?:_\w+)?\b")
_NAMED_CACHE: Final = re.compile(r"\b(?:\w+_)?caches?\b")
# The rules by which an owner is only likely.
_GUESSES: Final = ("operand", "weak")


@dataclass
class Argument:
    """An argument of the program, an entry parameter.

    Attributes:
        name: its op_name; None without one.
        array: its shape; None for a tuple.
        container: the user's argument that it belongs to: `params` of `params['w']`.
        is_replaced: whether an output reuses its buffer, or is the argument.
        has_own_result: whether the program computes at least as many outputs of its type and
            dimensions as there are such arguments.
        is_trained: whether the output that replaces it, or one that may be its next value,
            depends on a gradient.
        is_read_by_model, is_read_by_optimizer: whether the forward or backward pass, or the
            optimizer, reads it.
        is_differentiated: whether differentiated code reads the argument itself.
        is_updated: whether the optimizer computes with it.
    """

    name: str | None
    array: ArrayShape | None
    container: str
    is_replaced: bool = False
    has_own_result: bool = False
    is_trained: bool = False
    is_read_by_model: bool = False
    is_read_by_optimizer: bool = False
    is_differentiated: bool = False
    is_updated: bool = False

    @property
    def is_named_weight(self) -> bool:
        """Whether its name contains `params` or the like."""
        return bool(_NAMED_WEIGHT.search(self.name or ""))

    @property
    def is_named_optimizer(self) -> bool:
        """Whether its name contains `opt_state` or the like."""
        return bool(_NAMED_OPTIMIZER.search(self.name or ""))

    @property
    def is_named_cache(self) -> bool:
        """Whether its name contains `cache` or the like."""
        return bool(_NAMED_CACHE.search(self.name or ""))

    @property
    def is_leaf(self) -> bool:
        """Whether it has the name of a leaf of a container: `p['emb']`, `cache[0]`."""
        name = self.name or ""
        return ("[" in name or "." in name) and "/" not in name and not _STARRED.fullmatch(name)

    @property
    def is_state(self) -> bool:
        """Whether an output replaces it, or may be its next value."""
        return self.is_replaced or (self.is_leaf and self.has_own_result)

    @property
    def first_dimension(self) -> int | None:
        """The size of an array's first dimension; None for a scalar and for a tuple."""
        return self.array.dimensions[0] if self.array and self.array.dimensions else None

    @property
    def is_integer(self) -> bool:
        """Whether it holds indices or counts."""
        return self.array is not None and self.array.element_type in ("s32", "s64")

    @property
    def is_data(self) -> bool:
        """Whether it is an array of one dimension or more, and no random key."""
        is_key = self.array is not None and self.array.element_type == "u32"
        return self.first_dimension is not None and not is_key


def find_arguments(owned: OwnedValues) -> tuple[dict[int, Argument], bool]:
    """Collect the evidence about each argument.

    Returns:
        The arguments, by the row of the parameter; and whether the program returns gradients, has
        no optimizer and replaces nothing.
    """
    named, flow, passes = owned.named, owned.named.flow, owned.passes
    arguments = _read_arguments(owned)
    _add_readers(owned, arguments)
    results = [(flow.value[slot], slot) for slot in owned.analysis.result_slots()]
    loops = find_loop_phis(owned.values)
    depends_on_gradient = {
        value: passes.depends_on_gradient[flow.row[_computing_value(owned, loops, value)]]
        for value, _ in results
    }
    # The output's layout may differ from the value's, so that its slot has the shape.
    computed = [
        (value, flow.slots.array(slot))
        for value, slot in results
        if not named.is_argument[flow.row[value]]
    ]
    updated = [array for value, array in computed if depends_on_gradient[value]]
    has_own_update = _with_own_result(arguments, updated)
    for row in _with_own_result(arguments, [array for _, array in computed]):
        arguments[row].has_own_result = True
    for row in _replaced_arguments(owned, [value for value, _ in results]):
        arguments[row].is_replaced = True
    has_optimizer = any(argument.is_read_by_optimizer for argument in arguments.values())
    replaces = any(argument.is_replaced for argument in arguments.values())
    trained_results = [value for value, depends in depends_on_gradient.items() if depends]
    trained = _replaced_arguments(owned, trained_results)
    for row, argument in arguments.items():
        # Without an optimizer the program computes gradients alone, possibly also of inputs.
        may_update = has_optimizer or argument.is_leaf or argument.name is None
        has_update = argument.is_updated or (row in has_own_update and may_update)
        argument.is_trained = row in trained or (has_update and not argument.is_replaced)
    return arguments, bool(has_own_update) and not has_optimizer and not replaces


def _read_arguments(owned: OwnedValues) -> dict[int, Argument]:
    """The arguments by row, with their names and shapes, and without the evidence.

    An argument without a name gets the container of the first named argument, as a guess.
    """
    named, program = owned.named, owned.named.program
    arguments = {}
    for row in program.parameters(program.entry):
        name = named.op_name[row].text
        match = _CONTAINER.match(name or "")
        array = owned.values.array[named.value_of(row)]
        arguments[row] = Argument(name, array, container=match[0] if match else "")
    with_name = [argument for argument in arguments.values() if argument.name is not None]
    for argument in arguments.values():
        if argument.name is None and with_name:
            argument.container = with_name[0].container
    return arguments


def _add_readers(owned: OwnedValues, arguments: dict[int, Argument]) -> None:
    """Set what reads each argument, and whether the optimizer computes with it.

    Values that a loop carries, and copies, slices and conversions of an argument count as the
    argument. A partitioned program may return another part of an array than it takes, so that a
    read by the optimizer shows an update, but for a scalar, or if the reader has no name: it may be
    a gradient, such as that of the first convolution.
    """
    named, passes = owned.named, owned.passes
    for read in owned.reads:
        argument = arguments.get(owned.owners.row[read.value])
        argument = argument or arguments.get(owned.owners.row[owned.owners.source[read.value]])
        if argument is None:
            continue
        # XLA fuses the optimizer's work with backward work, so that the reader inside decides.
        reader = owned.readers.inner_reader(read.user, read.operand_number)
        if passes.by_row[reader] == OPTIMIZER:
            argument.is_read_by_optimizer = True
            # A scan slices its inputs next to the body's work, so that a slice is no update.
            computes = named.can_be_owner[reader] and not named.op_name[reader].is_slice
            if computes and _is_float(owned.values.array[read.value]):
                argument.is_updated = argument.is_updated or owned.values.elements[read.value] > 1
        elif passes.by_row[reader] in (FORWARD, BACKWARD, REMATERIALISED):
            argument.is_read_by_model = True
        if named.program.opcode[reader] == "convert":
            reader = read.user
        if _is_in_differentiated_code(owned, reader):
            argument.is_differentiated = True


def _is_in_differentiated_code(owned: OwnedValues, reader: int) -> bool:
    """Whether an instruction that reads an argument belongs to differentiated code."""
    op_name, passes = owned.named.op_name[reader], owned.passes
    return (
        op_name.is_forward
        or op_name.is_backward
        or op_name.is_rematerialised
        # A program may look up rows of a table first and differentiate by the rows. In inference
        # a gather changes no role, because no argument is trained.
        or op_name.operation == "gather"
        or (passes.names_lack_passes and passes.by_row[reader] in (FORWARD, BACKWARD))
    )


def _is_float(array: ArrayShape | None) -> bool:
    return array is not None and array.element_type.startswith(("f", "bf"))


def _computing_value(owned: OwnedValues, loops: dict[int, LoopInputs], value: int) -> int:
    """The value before copies and loops: for a loop's result, that of the body's last iteration."""
    values = owned.values
    while True:
        source = NONE
        if values.opcode[value] in COPIES and values.array[value] is not None:
            source = values.operand(value, 0)
        elif values.opcode[value] == "while" and value in loops:
            source = loops[value].computed
        if source == NONE:
            return value
        value = source


def _with_own_result(
    arguments: dict[int, Argument], results: Iterable[ArrayShape | None]
) -> set[int]:
    """The arguments with at least as many results of their type and dimensions as arguments."""
    results_of_shape = Counter(map(_plain_shape, results))
    counts = Counter(_plain_shape(argument.array) for argument in arguments.values())
    return {
        row
        for row, argument in arguments.items()
        if (shape := _plain_shape(argument.array)) is not None
        and results_of_shape[shape] >= counts[shape]
    }


def _plain_shape(array: ArrayShape | None) -> tuple[str, tuple[int, ...]] | None:
    """The element type and dimensions of an array; None for a tuple."""
    return None if array is None else (array.element_type, array.dimensions)


def _replaced_arguments(owned: OwnedValues, results: list[int]) -> set[int]:
    """The rows of the arguments that one of these results is, or whose buffer it reuses."""
    named, alias_set = owned.named, owned.analysis.liveness.alias_set
    result_sets = {alias_set[value] for value in results}
    replaced = {
        row
        for row, number in zip(named.flow.row, alias_set, strict=True)
        if named.is_argument[row] and number in result_sets
    }
    for value in results:
        owner = owned.owners.row[value]
        if owner != NONE and named.is_argument[owner] and owned.owners.rule[value] not in _GUESSES:
            replaced.add(owner)
    return replaced
