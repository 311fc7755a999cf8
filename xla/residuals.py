"""Residuals: what the forward pass keeps for the backward pass."""

from dataclasses import dataclass

import numpy as np

from .op_names import Kind
from .origins import Named, Origins, Values
from .passes import BACKWARD, FORWARD, REMATERIALISED
from .program import NONE, Ints, Mask
from .roles import Reads
from .runs import components, joined

_LATER = (BACKWARD, REMATERIALISED)
# What of a residual is the same residual: in another place, or one layer of it.
_PARTS = ("copy", "copy-start", "slice", "dynamic-slice")


@dataclass(frozen=True)
class Residuals:
    """`of` is the residual that each value holds, NONE for most.

    Of each residual: `value`, the largest that holds it; `layers`, how many of its origin's
    results are stacked in it; `reader`, the instruction that reads it first in the backward
    pass, NONE if that has no name.
    """

    of: Ints
    value: Ints
    layers: Ints
    reader: Ints


def find_residuals(
    values: Values,
    origins: Origins,
    value_pass: Ints,
    reads: Reads,
    alias_set: Ints,
    time: Ints,
) -> Residuals:
    """Find what is made in the forward pass and read last in the backward pass.

    An alias set is one tensor; sets with one origin are one residual if one is a copy or a
    slice of the other. Each memory space has residuals of its own. `time` is that of each
    instruction.
    """
    named = values.named
    bytes_ = values.bytes
    largest = _largest(alias_set, bytes_)
    # What a reducer computes has no time.
    is_forward = (value_pass[largest] == FORWARD) & values.is_array & (time[values.row] != NONE)
    order = np.flatnonzero(is_forward[reads.value])
    order = order[np.lexsort((time[reads.user[order]], alias_set[reads.value[order]]))]
    read_set, read_pass = alias_set[reads.value[order]], reads.pass_[order]
    last = np.full(len(is_forward), NONE)
    last[read_set] = read_pass  # of several reads the last one stays
    part, whole = _parts(named, values, origins)
    copied_at = time[values.row[part]]
    part, whole = alias_set[part], alias_set[whole]
    # What is copied or cut in the backward pass is read there, if the copy is.
    later_time = time[reads.user[reads.pass_ == BACKWARD]]
    copied_late = copied_at >= later_time[later_time != NONE].min(initial=len(time))
    saved = _with_sources(np.isin(last, _LATER), part[copied_late], whole[copied_late])
    group = components(len(alias_set), part, whole)
    held = np.flatnonzero(saved[alias_set] & is_forward)
    keys = np.stack([group[alias_set[held]], values.space[held]])
    keys, residual = np.unique(keys, axis=1, return_inverse=True)
    of = np.full(len(is_forward), NONE)
    of[held] = residual.reshape(-1)
    rank, value = _by_size(of, bytes_, keys.shape[1])
    of[held] = rank[of[held]]
    reader = _first_readers(named, reads, order, time, group[alias_set])
    return Residuals(of, value, _layers(values, origins, value), reader[group[alias_set[value]]])


def _first_readers(named: Named, reads: Reads, chosen: Ints, time: Ints, group: Ints) -> Ints:
    """Of each group of values the first instruction of the backward pass that reads one, or NONE.

    The slice that a scan takes out of a stack says nothing about who needs it.
    """
    reader = reads.reader[chosen]
    tells = np.isin(reads.pass_[chosen], _LATER) & ~named.takes_a_slice[reader]
    chosen, reader = chosen[tells], reader[tells]
    latest_first = np.argsort(-time[reads.user[chosen]], kind="stable")
    found = np.full(len(group), NONE)
    found[group[reads.value[chosen[latest_first]]]] = reader[latest_first]
    return found


def _largest(group: Ints, bytes_: Ints) -> Ints:
    """The largest value of the group that each value is in; of equally large ones the first."""
    order = np.lexsort((-bytes_, group))
    heads = np.flatnonzero(np.concatenate([[True], group[order][1:] != group[order][:-1]]))
    of_group = np.full(len(group), NONE)
    of_group[group[order[heads]]] = order[heads]
    found: Ints = of_group[group]
    return found


def _parts(named: Named, values: Values, origins: Origins) -> tuple[Ints, Ints]:
    """Pairs of values of one origin: the first is a copy or a slice of the second."""
    moved = values.of(*_PARTS, "custom-call", "fusion", "concatenate")
    nameless = named.names.kind[values.row[moved]] < Kind.JOINED
    is_part = named.program.opcode.is_one_of(*_PARTS)[values.row[moved]]
    moved = moved[nameless | is_part | named.takes_a_slice[values.row[moved]]]
    row = values.row[moved]
    counts = named.program.operand_count[row]
    operand = named.program.operands[joined(named.program.operand_start[row], counts)]
    part, whole = np.repeat(moved, counts), named.value_of(operand)
    same = (whole != NONE) & (origins.instruction[part] != NONE)
    same &= origins.instruction[part] == origins.instruction[whole]
    return part[same], whole[same]


def _with_sources(chosen: Mask, part: Ints, whole: Ints) -> Mask:
    """The chosen sets, and those that chosen ones are parts of, through any number of parts."""
    found = chosen.copy()
    while True:
        further = whole[found[part] & ~found[whole]]
        if not len(further):
            return found
        found[further] = True


def _by_size(of: Ints, bytes_: Ints, count: int) -> tuple[Ints, Ints]:
    """New numbers of the residuals, the largest first, and the largest value of each."""
    held = np.flatnonzero(of != NONE)
    order = held[np.lexsort((held, -bytes_[held]))]
    _, first = np.unique(of[order], return_index=True)
    value = order[np.sort(first)]
    rank = np.full(count, NONE)
    rank[of[value]] = np.arange(count)
    return rank, value


def _layers(values: Values, origins: Origins, value: Ints) -> Ints:
    """How many of its origin's results each of these values holds; 1 unless it is a multiple."""
    held = values.elements[value]
    one = values.named.elements[origins.instruction[value]]
    multiple = (one > 0) & (held >= one) & (held % np.maximum(one, 1) == 0)
    return np.where(multiple, held // np.maximum(one, 1), 1)
