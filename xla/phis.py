"""Phis: the slots where a loop or a conditional merges values."""

from .analysis import Schedule
from .program import NONE, Program
from .schedule import scheduled_rows
from .slots import Slots


def find_phis(program: Program, schedule: Schedule, slots: Slots) -> list[tuple[int, int]]:
    """Pairs of slots: one that merges values, and one whose value it merges.

    A while merges, at each index, its operand and the root of its body; so do the parameters of
    its body and its condition. A conditional merges the roots of its branches. The order is
    that in which XLA creates the phis: inner loops before outer ones; of a loop its condition,
    its body, then the while itself.
    """
    branches: dict[int, list[int]] = {}
    for computation, caller in enumerate(schedule.caller):
        if caller != NONE and program.opcode[caller] == "conditional":
            branches.setdefault(caller, []).append(program.root[computation])
    pairs: list[tuple[int, int]] = []

    def merge(row: int, inputs: list[int]) -> None:
        if any(slots.count(source) != slots.count(row) for source in inputs):
            raise program.error(row, "and its operand differ in shape")
        for part in range(slots.count(row)):
            phi = slots.start[row] + part
            pairs.extend([(phi, slots.start[source] + part) for source in inputs])

    for row in scheduled_rows(program, schedule, "while", "conditional"):
        if program.opcode[row] == "while":
            initial = program.operand(row, 0)
            body, condition = program.callee(row, "body"), program.callee(row, "condition")
            repeated = program.root[body]
            merge(program.parameter(condition, 0, caller=row), [initial, repeated])
            merge(program.parameter(body, 0, caller=row), [initial, repeated])
            merge(row, [repeated, initial])
        else:
            merge(row, branches.get(row, []))
    return pairs


class PhiGraph:
    """The phis and the values that they merge, simplified by the rules of XLA's PhiGraph::Optimize.

    A phi is replaced by a value in two cases:

    - its inputs, without the phi itself, are one value;
    - only one value that is not a phi reaches the phi, through any number of phis.

    The replacement does not inherit the users of the phi, so that a later replacement does not
    reach them. Therefore XLA keeps several phis where a loop forwards a value that an outer loop
    changes, if two more loops are nested in it.

    Attributes:
        inputs: by phi, the nodes that it merges; a node is the slot of a phi or of a value.
        users: by node, the phis that merge it.
        replaced_by: by replaced phi, a node.
    """

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        """Simplify the graph of these pairs: a phi and one of its inputs, phis in XLA's order."""
        self.inputs: dict[int, list[int]] = {}
        self.users: dict[int, set[int]] = {}
        self.replaced_by: dict[int, int] = {}
        for phi, node in pairs:
            self.inputs.setdefault(phi, []).append(node)
            self.users.setdefault(node, set()).add(phi)
        n_replaced = -1
        while n_replaced != len(self.replaced_by):
            n_replaced = len(self.replaced_by)
            searched: set[int] = set()
            for phi in self.inputs:
                if phi not in self.replaced_by:
                    self._simplify(phi, searched)

    def value_of(self, node: int) -> int:
        """The phi or value that replaces a node; the node itself if it is not replaced."""
        while node in self.replaced_by:
            node = self.replaced_by[node]
        return node

    def _simplify(self, phi: int, searched: set[int]) -> None:
        """Replace a phi, or it and all phis that reach it, if possible.

        Args:
            searched: the nodes that the searches of this round have visited.
        """
        inputs = self.inputs[phi] = [node for node in self.inputs[phi] if node != phi]
        if phi in self.users:
            self.users[phi].discard(phi)
        if len(set(inputs)) == 1:
            self._replace(phi, inputs[0])
        elif phi not in searched:
            reaching, values = self._find_reaching(phi)
            searched.update(reaching)
            if len(values) == 1:
                for node in reaching:
                    if node in self.inputs:
                        self._replace(node, values[0])

    def _find_reaching(self, phi: int) -> tuple[list[int], list[int]]:
        """The nodes that reach a phi through inputs, breadth first, and the values among them.

        The search ends at the second value.
        """
        nodes, visited, values = [phi], {phi}, list[int]()
        for position, node in enumerate(nodes):
            if node not in self.inputs:
                values.append(node)
                if len(values) > 1:
                    return nodes[: position + 1], values
            for source in self.inputs.get(node, ()):
                if source not in visited:
                    visited.add(source)
                    nodes.append(source)
        return nodes, values

    def _replace(self, phi: int, node: int) -> None:
        value = self.value_of(node)
        if phi in self.replaced_by or phi == value:
            return
        for user in self.users.get(phi, ()):
            if user in self.inputs:
                self.inputs[user] = [value if n == phi else n for n in self.inputs[user]]
        for source in self.inputs[phi]:
            if phi in self.users[source]:
                self.users[source].discard(phi)
                self.users[source].add(value)
        self.replaced_by[phi] = value
