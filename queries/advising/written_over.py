"""Whether an instruction may write its result over an operand, as XLA decides."""

from ...xla.opcodes import ELEMENTWISE
from .asked_program import Program

_UPDATES = ("dynamic-update-slice", "scatter")
# What writes over its operand itself, or hands it on to a computation that does.
_HOLDS = (*ELEMENTWISE, "while", "conditional")
# A TPU's fusions may also reduce the operand beside, or see it in other dimensions.
_ALSO = {"tpu": ("tuple", "bitcast", "reduce")}


class InPlace:
    """Answers for the instructions of one program."""

    def __init__(self, program: Program) -> None:
        self._graph = program.graph
        self._through = (*ELEMENTWISE, *_ALSO.get(program.platform or "", ("tuple",)))

    def may_write_over(self, instruction: int, operand_number: int) -> bool:
        """Whether the result may lie where this operand lies, if their bytes are equal."""
        opcode = self._graph.opcode[instruction]
        if opcode in ("fusion", "call"):
            return self._reads_by_element(instruction, operand_number)
        return opcode in _HOLDS or (opcode in _UPDATES and operand_number == 0)

    def _reads_by_element(self, caller: int, operand_number: int) -> bool:
        """Whether the called computation reads the operand only element by element."""
        parameters = self._graph.parameters(self._graph.body(caller))
        waiting = [parameters[operand_number]]
        reached = set(waiting)
        while waiting:
            for user, number in self._graph.readers(waiting.pop()):
                if not self._is_by_element(user, number):
                    return False
                if user not in reached:
                    reached.add(user)
                    waiting.append(user)
        return True

    def _is_by_element(self, user: int, number: int) -> bool:
        opcode = self._graph.opcode[user]
        if opcode in ("fusion", "call"):
            return self._reads_by_element(user, number)
        # What follows an update in place is the result already.
        is_update = opcode in _UPDATES and number == 0
        return is_update or opcode in self._through or self._is_seen_by_updates(user)

    def _is_seen_by_updates(self, instruction: int) -> bool:
        """Whether the instruction only shows an array in other dimensions to updates."""
        graph = self._graph
        return graph.opcode[instruction] == "bitcast" and all(
            graph.opcode[user] in _UPDATES for user in graph.users[instruction]
        )
