"""Residuals: the values of the forward pass that the backward pass reads."""

from dataclasses import dataclass

import numpy as np

from .columns.bridge_o import COPIES, Named, Origins, Values
from .columns.program import NONE, Ints, Mask
from .names import Kind
from .passes import BACKWARD, FORWARD, REMATERIALISED
from .roles import Reads
from .runs import components, joined

_LATER = (BACKWARD, REMATERIALISED)
# Opcodes that copy a residual or take a layer of it.
_COPIES_OR_SLICES = (*COPIES, "slice", "dynamic-slice")


@dataclass(frozen=True)
class Residuals:
    """`of` is the residual that each value is part of, NONE for most values.

    Of each residual: `value`, its largest value; `layers`, how many results of the owner are
    stacked in that value; `reader`, the first named instruction of the backward pass that reads
    the residual, or NONE.
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
    """Find the values that the forward pass makes and the backward pass is the last to read.

    An alias set is one tensor. Two sets with one owner are one residual if one set is a copy or
    a slice of the other. Each memory space has its own residuals. `time` is by instruction.
    """
    named = values.named
    program_of = named.program.program_of[values.row]
    bytes_ = values.bytes
    largest = _largest(alias_set, bytes_)
    # Values inside of reducers have no time.
    is_forward = (value_pass[largest] == FORWARD) & values.is_array & (time[values.row] != NONE)
    forward_reads = np.flatnonzero(is_forward[reads.value])
    read_time, read_set = time[reads.user[forward_reads]], alias_set[reads.value[forward_reads]]
    forward_reads = forward_reads[np.lexsort((read_time, read_set))]
    last_pass = np.full(len(is_forward), NONE)
    # Of several reads of a set, the last one stays.
    last_pass[alias_set[reads.value[forward_reads]]] = reads.pass_[forward_reads]
    part, whole = _parts(named, values, origins)
    copied_at, copied_to = time[values.row[part]], program_of[part]
    part, whole = alias_set[part], alias_set[whole]
    # If the backward pass reads a copy or slice that it makes itself, it also reads the source.
    is_copied_late = copied_at >= _first_backward(named, reads, time)[copied_to]
    is_read_later = np.isin(last_pass, _LATER)
    is_saved = _with_sources(is_read_later, part[is_copied_late], whole[is_copied_late])
    group = components(len(alias_set), part, whole)
    residual_values = np.flatnonzero(is_saved[alias_set] & is_forward)
    keys = np.stack([group[alias_set[residual_values]], values.space[residual_values]])
    keys, residual = np.unique(keys, axis=1, return_inverse=True)
    of = np.full(len(is_forward), NONE)
    of[residual_values] = residual.reshape(-1)
    rank, value = _by_size(of, program_of, bytes_, keys.shape[1])
    of[residual_values] = rank[of[residual_values]]
    reader = _first_readers(named, reads, forward_reads, time, group[alias_set])
    return Residuals(of, value, _layers(values, origins, value), reader[group[alias_set[value]]])


def _first_backward(named: Named, reads: Reads, time: Ints) -> Ints:
    """When the backward pass of each program reads the first time; after all times if never."""
    users = reads.user[reads.pass_ == BACKWARD]
    users = users[time[users] != NONE]
    first = np.full(len(named.program.entries), len(time))
    np.minimum.at(first, named.program.program_of[users], time[users])
    return first


def _first_readers(named: Named, reads: Reads, chosen: Ints, time: Ints, group: Ints) -> Ints:
    """The first instruction of the backward pass that reads a value of each group, or NONE.

    A slice that a scan takes out of a stack does not count, because it only moves a layer.
    """
    reader = reads.reader[chosen]
    counts = np.isin(reads.pass_[chosen], _LATER) & ~named.takes_a_slice[reader]
    chosen, reader = chosen[counts], reader[counts]
    latest_first = np.argsort(-time[reads.user[chosen]], kind="stable")
    first_reader = np.full(len(group), NONE)
    first_reader[group[reads.value[chosen[latest_first]]]] = reader[latest_first]
    return first_reader


def _largest(group: Ints, bytes_: Ints) -> Ints:
    """The largest value in the group of each value; of equally large ones the first."""
    order = np.lexsort((-bytes_, group))
    heads = np.flatnonzero(np.concatenate([[True], group[order][1:] != group[order][:-1]]))
    largest_of_group = np.full(len(group), NONE)
    largest_of_group[group[order[heads]]] = order[heads]
    largest: Ints = largest_of_group[group]
    return largest


def _parts(named: Named, values: Values, origins: Origins) -> tuple[Ints, Ints]:
    """Pairs of values with one owner: the first is a copy or a slice of the second."""
    candidates = values.of(*_COPIES_OR_SLICES, "custom-call", "fusion", "concatenate")
    row = values.row[candidates]
    may_move = named.program.opcode.is_one_of(*_COPIES_OR_SLICES) | named.takes_a_slice
    may_move |= named.names.kind < Kind.JOINED
    candidates, row = candidates[may_move[row]], row[may_move[row]]
    counts = named.program.operand_count[row]
    operand = named.program.operands[joined(named.program.operand_start[row], counts)]
    part, whole = np.repeat(candidates, counts), named.value_of(operand)
    has_same_owner = (whole != NONE) & (origins.instruction[part] != NONE)
    has_same_owner &= origins.instruction[part] == origins.instruction[whole]
    return part[has_same_owner], whole[has_same_owner]


def _with_sources(chosen: Mask, part: Ints, whole: Ints) -> Mask:
    """The chosen sets, and those that they are parts of, directly or not."""
    with_sources = chosen.copy()
    while True:
        sources = whole[with_sources[part] & ~with_sources[whole]]
        if not len(sources):
            return with_sources
        with_sources[sources] = True


def _by_size(of: Ints, program_of: Ints, bytes_: Ints, count: int) -> tuple[Ints, Ints]:
    """The rank of each residual by program and size of its largest value; that value by rank."""
    values = np.flatnonzero(of != NONE)
    order = values[np.lexsort((values, -bytes_[values], program_of[values]))]
    _, first = np.unique(of[order], return_index=True)
    value = order[np.sort(first)]
    rank = np.full(count, NONE)
    rank[of[value]] = np.arange(count)
    return rank, value


def _layers(values: Values, origins: Origins, value: Ints) -> Ints:
    """How many results of its owner each of these values stacks; 1 if the sizes do not fit."""
    elements = values.elements[value]
    elements_of_result = values.named.elements[origins.instruction[value]]
    divisor = np.maximum(elements_of_result, 1)
    is_multiple = (elements_of_result > 0) & (elements >= divisor) & (elements % divisor == 0)
    return np.where(is_multiple, elements // divisor, 1)
