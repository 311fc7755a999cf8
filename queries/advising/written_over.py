"""Whether an instruction may write its result over an operand: the rules that ingest has."""

from functools import cached_property

from ...xla.in_place import InPlaceRules
from ...xla.opcodes import ELEMENTWISE
from ...xla.program import Mask
from ...xla.sharing import Elementwise
from .asked_program import Program

# What writes over its operand itself, or hands it on to a computation that does.
_HOLDS = (*ELEMENTWISE, "while", "conditional")
# A TPU's fusions may also reduce the operand beside, or see it in other dimensions.
_THROUGH = {"tpu": ("tuple", "bitcast", "reduce")}


class InPlace:
    """Answers for the instructions of one program."""

    def __init__(self, program: Program) -> None:
        self._graph = program.graph
        self._platform = program.platform
        self._rules = InPlaceRules(program.graph.program)
        self._elementwise = Elementwise(program.graph.program)

    def may_write_over(self, instruction: int, operand_number: int) -> bool:
        """Whether the result may lie where this operand lies, if their bytes are equal."""
        opcode = self._graph.opcode[instruction]
        if opcode in _HOLDS:
            return True
        if any(pair.operand == operand_number for pair in self._rules.pairs(instruction)):
            return True
        if opcode not in ("fusion", "call"):
            return False
        parameter = self._graph.parameters(self._graph.body(instruction))[operand_number]
        if opcode == "fusion":
            return not self._reaches_other(instruction)[parameter]
        return all(self.may_write_over(*reader) for reader in self._graph.readers(parameter))

    def may_become(self, instruction: int, operand_number: int) -> bool:
        """Whether the result is what the operand becomes: also as an array of other dimensions."""
        if self.may_write_over(instruction, operand_number):
            return True
        if self._graph.opcode[instruction] != "fusion":
            return False
        parameter = self._graph.parameters(self._graph.body(instruction))[operand_number]
        return not self._seen[parameter]

    def _reaches_other(self, fusion: int) -> Mask:
        """Which parameters of the fusion are not read element by element alone."""
        if self._platform != "cpu":
            return self._reached
        kind = self._graph.program.fusion_kind.at(fusion)
        if kind in ("kLoop", "kInput"):
            return self._elementwise.loop_reaches_other
        return self._elementwise.strictly_reaches_other

    @cached_property
    def _seen(self) -> Mask:
        return self._elementwise.reaches_other("tuple", "bitcast")

    @cached_property
    def _reached(self) -> Mask:
        return self._elementwise.reaches_other(*_THROUGH.get(self._platform or "", ("tuple",)))
