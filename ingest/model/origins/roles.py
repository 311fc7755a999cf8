"""What values are in a training step or an inference: weights, activations, gradients.

The role follows from structure: what reads a value in which pass, and what takes its place.
"""

import re

import numpy as np

from ..numbered_program import NONE, Ints, Mask
from .find_origins import Origins
from .inner_readers import inner_readers
from .named import Named
from .passes import BACKWARD, FORWARD, OPTIMIZER, PASSES, REMATERIALISED, Passes
from .reads import Reads
from .values import GATHERS, Values
from .ways import OPERAND, WEAK

# JAX's name for an array that a function takes by `*args`.
_STARRED = re.compile(r"args\[\d+\]")
ROLES = (
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
)
(
    WEIGHT,
    OPTIMIZER_STATE,
    STATE,
    INPUT,
    GATHERED,
    ACTIVATION,
    GRADIENT,
    OUTPUT,
    CONSTANT,
    WORKSPACE,
) = range(len(ROLES))


def find_roles(
    values: Values,
    origins: Origins,
    value_pass: Ints,
    reads: Reads,
    passes: Passes,
    alias_set: Ints,
    is_residual: Mask,
) -> Ints:
    """The role of each array, a number of ROLES; NONE of a tuple's table."""
    named = values.named
    of_argument = argument_roles(values, origins, reads, passes, alias_set)
    row = values.row
    is_argument = named.is_entry_parameter[row]
    origin_role = np.where(origins.row != NONE, of_argument[origins.row], NONE)
    is_larger = values.elements > named.elements[origins.row]
    gathered = named.program.opcode.is_one_of(*GATHERS)[row] | is_larger
    later = np.zeros(len(row), bool)
    asked = np.flatnonzero(value_pass[reads.value] == BACKWARD)
    # XLA fuses the optimizer's work with other products of the backward pass.
    reader = inner_readers(named, reads.user[asked], reads.operand[asked])
    asked = asked[passes.codes[reader] == OPTIMIZER]
    later[alias_set[reads.value[asked]]] = True
    role = np.full(len(row), WORKSPACE)
    for chosen, name in (
        ((value_pass == BACKWARD) & later[alias_set], GRADIENT),
        (is_residual, ACTIVATION),
        ((origin_role == WEIGHT) & gathered, GATHERED),
        (named.program.opcode.is_one_of("constant")[row], CONSTANT),
        (lives_out(values), OUTPUT),
    ):
        role[chosen] = name
    role = np.where(is_argument, of_argument[row], role)
    return np.where(values.is_array, role, NONE)


def argument_roles(
    values: Values, origins: Origins, reads: Reads, passes: Passes, alias_set: Ints
) -> Ints:
    """The role of each argument, by instruction; NONE of other instructions.

    In a program with a backward pass: a weight is read in the forward pass and updated, an
    optimizer's state is read by the optimizer alone and updated, the rest are inputs. An
    argument is updated if an output takes its place, or has its type and dimensions, or if the
    optimizer reads it and it is an array of floating-point numbers. In a
    program without: state is what an output takes the place of; the leaves of a container are
    weights, arguments that are arrays themselves are inputs.
    """
    named = values.named
    program = named.program
    count = len(program)
    rows = np.flatnonzero(named.is_entry_parameter)
    out = np.flatnonzero(lives_out(values))
    arguments = np.flatnonzero(named.is_entry_parameter[values.row])
    in_place = np.zeros(count, bool)
    in_place[values.row[arguments[np.isin(alias_set[arguments], alias_set[out])]]] = True
    sure = out[(origins.row[out] != NONE) & ~np.isin(origins.rule[out], (OPERAND, WEAK))]
    in_place[origins.row[sure]] = True
    found = np.full(count, NONE)
    if (reads.pass_ == BACKWARD).any():
        # A result may be laid out anew where it is given back.
        held, at = _results(values)
        computed = at[~named.is_entry_parameter[values.row[held]]]
        taken = values.plain_shape(named.dataflow.defined_at[arguments])
        same = np.zeros(count, bool)
        same[values.row[arguments[np.isin(taken, values.plain_shape(computed))]]] = True
        owner = origins.row[reads.value]
        asked = np.flatnonzero((owner != NONE) & named.is_entry_parameter[owner])
        # XLA fuses the optimizer's work with the last product of the backward pass.
        reader = inner_readers(named, reads.user[asked], reads.operand[asked])
        by = np.zeros((count, len(PASSES)), bool)
        by[owner[asked], passes.codes[reader]] = True
        # A partitioned program may give back another part than it takes.
        large = arguments[values.is_float[arguments] & (values.elements[arguments] > 1)]
        is_large = np.zeros(count, bool)
        is_large[values.row[large]] = True
        updated = in_place | same | (by[:, OPTIMIZER] & is_large)
        if not by[:, OPTIMIZER].any():
            # Gradients alone: of inputs too.
            updated &= _in_container(named) | (named.names.code == NONE)
        by_model = by[:, [FORWARD, BACKWARD, REMATERIALISED]].any(axis=1)
        role = np.where(by_model, WEIGHT, np.where(by[:, OPTIMIZER], OPTIMIZER_STATE, INPUT))
        role[~updated] = INPUT
    else:
        role = np.where(in_place, STATE, np.where(_in_container(named), WEIGHT, INPUT))
    found[rows] = role[rows]
    return found


def lives_out(values: Values) -> Mask:
    """Which values are part of the program's result."""
    found = np.zeros(len(values.row), bool)
    found[_results(values)[0]] = True
    return found


def _results(values: Values) -> tuple[Ints, Ints]:
    """The values that the program's result holds, and the slot of the result that holds each."""
    named = values.named
    slots, root = named.dataflow.slots, named.program.root[named.program.entry]
    at = np.arange(slots.start[root], slots.start[root] + slots.count[root])
    held = named.dataflow.value[at]
    return held[held != NONE], at[held != NONE]


def _in_container(named: Named) -> Mask:
    """Which instructions have the name of a container's leaf, such as `p['emb']` or `cache[0]`."""
    leaf = [
        ("[" in text or "." in text) and "/" not in text and not _STARRED.fullmatch(text)
        for text in named.names.texts
    ]
    found: Mask = np.array([*leaf, False], bool)[named.names.code]
    return found
