"""Whether an instruction may write its result over an operand, as XLA decides."""

import re
from functools import cached_property

from ...schema.elementwise import ELEMENTWISE
from .program import Program

_UPDATES = ("dynamic-update-slice", "scatter")
# What writes over its operand itself, or hands it on to a computation that does.
_HOLDS = (*ELEMENTWISE, "while", "conditional")
# A TPU's fusions may also reduce the operand beside, or see it in other dimensions.
_ALSO = {"tpu": ("tuple", "bitcast", "reduce")}
_NUMBERED = re.compile(r"param(?:eter)?_(\d+)")


class InPlace:
    """Answers for the instructions of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._through = (*ELEMENTWISE, *_ALSO.get(program.platform or "", ("tuple",)))

    def may_write_over(self, instruction: int, operand_number: int) -> bool:
        """Whether the result may lie where this operand lies, if their bytes are equal."""
        opcode = self._opcode[instruction]
        if opcode in ("fusion", "call"):
            return self._reads_by_element(instruction, operand_number)
        return opcode in _HOLDS or (opcode in _UPDATES and operand_number == 0)

    def _reads_by_element(self, caller: int, operand_number: int) -> bool:
        """Whether the called computation reads the operand only element by element."""
        computation = self._called.get(caller)
        if computation is None:
            return False
        reached = set(self._parameters(computation, operand_number))
        waiting = list(reached)
        while waiting:
            for user, number in self._readers.get(waiting.pop(), ()):
                opcode = self._opcode[user]
                if opcode in ("fusion", "call"):
                    is_allowed = self._reads_by_element(user, number)
                else:
                    # What follows an update in place is the result already.
                    is_update = opcode in _UPDATES and number == 0
                    is_allowed = is_update or opcode in self._through or self._is_bitcast(user)
                if not is_allowed:
                    return False
                if user not in reached:
                    reached.add(user)
                    waiting.append(user)
        return True

    def _is_bitcast(self, instruction: int) -> bool:
        """Whether the instruction only shows an array in other dimensions to an update."""
        if self._opcode[instruction] != "bitcast":
            return False
        return all(self._opcode[user] in _UPDATES for user, _ in self._readers.get(instruction, ()))

    def _parameters(self, computation: str, number: int) -> list[int]:
        """The parameter of this number; all, if the names do not tell numbers."""
        all_of = [each for each in self._within[computation] if self._opcode[each] == "parameter"]
        numbered = [
            each
            for each in all_of
            if (found := _NUMBERED.match(self._name[each])) and int(found.group(1)) == number
        ]
        return numbered or all_of

    @cached_property
    def _opcode(self) -> dict[int, str]:
        return self._column("opcode")

    @cached_property
    def _name(self) -> dict[int, str]:
        return self._column("instruction")

    @cached_property
    def _within(self) -> dict[str, list[int]]:
        """The instructions of each computation."""
        found: dict[str, list[int]] = {}
        for instruction, computation in self._column("computation").items():
            found.setdefault(computation, []).append(instruction)
        return found

    @cached_property
    def _called(self) -> dict[int, str]:
        """The computation of each fusion and call."""
        calls = self._program.rows(
            "SELECT instruction_id, computation FROM calls "
            "WHERE module_id = $1 AND attribute IN ('calls', 'to_apply')"
        )
        return dict(
            zip(calls["instruction_id"].to_pylist(), calls["computation"].to_pylist(), strict=True)
        )

    @cached_property
    def _readers(self) -> dict[int, list[tuple[int, int]]]:
        """Who reads each instruction, as which operand."""
        found: dict[int, list[tuple[int, int]]] = {}
        operands = self._program.operands
        for user, number, operand in zip(
            operands["instruction_id"].to_pylist(),
            operands["operand_number"].to_pylist(),
            operands["operand_instruction_id"].to_pylist(),
            strict=True,
        ):
            found.setdefault(operand, []).append((user, number))
        return found

    def _column(self, name: str) -> dict[int, str]:
        table = self._program.instructions
        return dict(zip(table["instruction_id"].to_pylist(), table[name].to_pylist(), strict=True))
