"""The instructions that forward values of their operands instead of defining new ones.

The rules are XLA's HloDataflowAnalysis. For an opcode without a rule one is assumed: it defines a
value at each part of its result, as most opcodes do, and an asynchronous pair forwards operands
and results as XLA's other pairs do.
"""

from typing import Final

from .analysis import Schedule
from .program import NONE, Program
from .slots import Slots

# These define a value at each part of their result.
_DEFINING_TEXT: Final = """
abs acos acosh add after-all all-gather all-reduce all-reduce-start all-to-all and asin asinh
atan2 atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast-convert broadcast
cbrt ceil cholesky clamp collective-broadcast collective-permute collective-reduce compare complex
concatenate constant convert convolution cosh cosine count-leading-zeros custom-call divide dot
dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft
floor fusion gather get-dimension-size imag infeed iota is-finite log log-plus-one logistic
map maximum minimum mulhi multiply negate not or outfeed pad partition-id popcnt power
ragged-all-to-all ragged-dot real recv reduce reduce-precision reduce-scatter reduce-window
remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state
round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter
send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical shuffle sign sine
sinh slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve xor
"""
_DEFINING: Final = frozenset(_DEFINING_TEXT.split())
# These define values too, until a rule on calls or phis forwards others.
_CALLING: Final = frozenset(("parameter", "while", "conditional", "call", "async-done"))
_FORWARDING_TEXT: Final = """
bitcast opt-barrier optimization-barrier add-dependency domain all-reduce-done all-gather-done
collective-permute-done get-tuple-element tuple copy copy-start copy-done async-start async-update
all-gather-start collective-permute-start send recv-done
"""
KNOWN_OPCODES: Final = _DEFINING.union(_CALLING, _FORWARDING_TEXT.split())


class Forwarding:
    """By slot, the slot whose value it has.

    Attributes:
        source: by slot, the slot whose value it has; the slot itself where a value is defined.
        valueless: the few slots without a value.
    """

    def __init__(self, program: Program, slots: Slots) -> None:
        """Apply the rules of the opcodes that forward their operands, but for calls.

        Raises DumpError where an instruction does not fit its operands.
        """
        self.program, self.slots = program, slots
        self.source = list(range(len(slots)))
        self.valueless: set[int] = set()
        for opcode, rows in program.rows_by_opcode().items():
            if opcode not in _DEFINING and opcode not in _CALLING:
                for row in rows:
                    if slots.start[row] != NONE:
                        self._apply(row, opcode)

    def forward(self, target: int, source: int) -> None:
        """Let each slot within `target` have the value of its counterpart within `source`.

        Raises DumpError if the shapes differ in structure.
        """
        size = self._common_size(target, source)
        self.source[target : target + size] = range(source, source + size)

    def forward_arrays(self, target: int, source: int) -> None:
        """Like `forward`, but the tables of tuples are new values."""
        for position in range(self._common_size(target, source)):
            if self.slots.is_leaf(target + position):
                self.source[target + position] = source + position

    def _common_size(self, target: int, source: int) -> int:
        size = self.slots.size[target]
        if source == NONE or self.slots.size[source] != size:
            raise self.program.error(self.slots.row[target], "and its operand differ in shape")
        return size

    def _apply(self, row: int, opcode: str) -> None:
        """Apply the rule of one instruction."""
        slots = self.slots
        result = slots.start[row]
        match opcode:
            case "bitcast" | "opt-barrier" | "optimization-barrier" | "add-dependency":
                self.forward(result, self._operand_slot(row, 0))
            case "domain" | "all-reduce-done":
                self.forward(result, self._operand_slot(row, 0))
            case "get-tuple-element":
                number = self.program.tuple_index[row]
                if number == NONE:
                    raise self.program.error(row, "has no index")
                self.forward(result, slots.element(self._operand_slot(row, 0), number))
            case "tuple":
                # It defines {}.
                for number in range(len(self.program.operands[row])):
                    self.forward(slots.element(result, number), self._operand_slot(row, number))
            case "copy":
                # It defines {}; for a tuple it copies only the table.
                self.forward(result, self._operand_slot(row, 0))
                self.source[result] = result
            case "copy-start":
                # It defines {}, the copy {0} and the context {2}.
                self.forward(slots.element(result, 1), self._operand_slot(row, 0))
            case "copy-done":
                self.forward(result, slots.element(self._operand_slot(row, 0), 0))
            case "send":
                # It defines {}, {1} and {2}.
                self.forward(slots.element(result, 0), self._operand_slot(row, 0))
            case "recv-done":
                # It defines {} and {1}.
                received = slots.element(self._operand_slot(row, 0), 0)
                self.forward(slots.element(result, 0), received)
            case "async-start":
                self._forward_inputs(row, first_operand=0)
            case "async-update" if len(self.program.operands[row]) > 1:
                # It binds the operands after the async-start, so that its shape differs from that.
                self._forward_inputs(row, first_operand=1)
            case "async-update":
                self.forward_arrays(result, self._operand_slot(row, 0))
            case "all-gather-start" | "collective-permute-start":
                self._forward_collective(row, opcode)
            case "all-gather-done" | "collective-permute-done":
                self.forward_arrays(result, slots.element(self._operand_slot(row, 0), 1))
            case _:
                self._assume(row, opcode)

    def _operand_slot(self, row: int, number: int) -> int:
        """The slot of an operand's result."""
        return self.slots.start[self.program.operand(row, number)]

    def _forward_inputs(self, row: int, first_operand: int) -> None:
        """The rule of an async-start: it defines {}, {0} and its contexts; {0,i} is operand i."""
        inputs = self.slots.element(self.slots.start[row], 0)
        for number in range(self.slots.element_count(inputs)):
            operand = self._operand_slot(row, first_operand + number)
            self.forward(self.slots.element(inputs, number), operand)

    def _forward_collective(self, row: int, opcode: str) -> None:
        """If {0} is a tuple, {0,i} is operand i; otherwise {0} is operand 0."""
        inputs = self.slots.element(self.slots.start[row], 0)
        if self.slots.is_leaf(inputs):
            self.forward(inputs, self._operand_slot(row, 0))
            return
        self._forward_inputs(row, first_operand=0)
        if opcode == "collective-permute-start" and len(self.program.operands[row]) > 1:
            self.valueless.add(inputs)

    def _assume(self, row: int, opcode: str) -> None:
        """The assumed rule of an opcode that is not known, such as all-to-all-start.

        XLA prints an async-start as the start of the opcode that its computation runs, and has a
        few pairs that are opcodes of their own. A start is `(operands, results, contexts…)`. Its
        end forwards what has the end's shape: the results of the start, or the complete operand.
        All else defines all of its values.
        """
        slots, operands = self.slots, self.program.operands[row]
        result = slots.start[row]
        if opcode.endswith("-start") and slots.element_count(result) > 1:
            inputs = slots.element(result, 0)
            targets = [inputs]
            if not slots.is_leaf(inputs):
                targets = [slots.element(inputs, n) for n in range(slots.element_count(inputs))]
            if len(targets) == len(operands):
                for target, operand in zip(targets, operands, strict=True):
                    if slots.size[target] == slots.count(operand):
                        self.forward(target, slots.start[operand])
        elif opcode.endswith(("-update", "-done")) and operands:
            start = slots.start[operands[0]]
            if slots.size[result] == slots.size[start]:
                self.forward_arrays(result, start)
            if opcode.endswith("-done") and slots.element_count(start) > 1:
                results = slots.element(start, 1)
                if slots.size[result] == slots.size[results]:
                    self.forward_arrays(result, results)

    def apply_calls(
        self,
        schedule: Schedule,
        in_place_pairs: list[tuple[int, int]],
        *,
        is_written_at_start: bool,
    ) -> None:
        """Forward values between callers and the computations of calls, branches and async-starts.

        A parameter is the caller's operand, but in a region it is a value of its own. A call is
        the root of its computation. The arrays of an async-done, and of {1} of the instruction
        that binds the operands, are those of the computation's root. An async-done whose
        async-start a loop carries has the arrays of {1} of its operand.

        Args:
            in_place_pairs: see `in_place_slots`.
            is_written_at_start: see `trace_values`.
        """
        program, slots = self.program, self.slots
        self._forward_parameters(schedule)
        for row in self._rows_with("call"):
            called = program.callee(row, "to_apply", "calls")
            # In a text without a schedule a later call of a computation defines its values.
            if schedule.caller[called] == row or schedule.time[row] == NONE:
                self.forward(slots.start[row], self._root_slot(row))
        for row in self._rows_with("async-start"):
            results = slots.element(slots.start[schedule.binder[row]], 1)
            self.forward_arrays(results, self._root_slot(row))
        for row in self._rows_with("async-done"):
            if row in schedule.started:
                results = self._root_slot(schedule.started[row])
            else:
                results = slots.element(self._operand_slot(row, 0), 1)
            self.forward_arrays(slots.start[row], results)
        if not is_written_at_start:
            self._keep_until_done(schedule, in_place_pairs)

    def _rows_with(self, opcode: str) -> list[int]:
        """The rows with an opcode that have slots."""
        return [row for row in self.program.rows_with(opcode) if self.slots.start[row] != NONE]

    def _root_slot(self, row: int) -> int:
        """The slot of the root of the computation that a call or an async-start runs."""
        return self.slots.start[self.program.called_root(row)]

    def _forward_parameters(self, schedule: Schedule) -> None:
        """Forward the caller's operands to the parameters of called computations."""
        program = self.program
        for computation, caller in enumerate(schedule.caller):
            if caller == NONE or program.opcode[caller] == "while":
                continue
            shift, operands = schedule.operand_shift[computation], program.operands[caller]
            for row in program.parameters(computation):
                number = program.parameter_number[row] + shift
                if number >= len(operands):
                    raise program.error(row, "has no operand of its caller")
                self.forward(self.slots.start[row], self.slots.start[operands[number]])

    def _keep_until_done(self, schedule: Schedule, in_place_pairs: list[tuple[int, int]]) -> None:
        """Forward an operand that an async-start updates in place to {1} of its result.

        XLA counts the update as a new value only at the async-done; but from the start if a fusion
        does it, or if an async-update binds its operands.
        """
        program, slots = self.program, self.slots
        start_by_root: dict[int, int] = {}
        for start in self._rows_with("async-start"):
            root = program.called_root(start)
            if schedule.binder[start] == start and program.opcode[root] != "fusion":
                start_by_root[root] = start
        for operand, result in in_place_pairs:
            root = slots.row[result]
            is_update = program.opcode[slots.row[operand]] == "parameter" and slots.is_leaf(result)
            if root in start_by_root and is_update:
                results = slots.element(slots.start[start_by_root[root]], 1)
                self.source[results + slots.part(result)] = operand

    def resolve(self) -> list[int]:
        """By slot, the slot that defines its value."""
        source = self.source
        for slot, origin in enumerate(source):
            if source[origin] == origin:
                continue
            path = [slot]
            while source[origin] != origin:
                path.append(origin)
                origin = source[origin]
                if len(path) > len(source):
                    row = self.slots.row[slot]
                    raise self.program.error(row, "has a value that is forwarded in a cycle")
            # Compress the path, so that the time is linear however long chains are.
            for step in path:
                source[step] = origin
        return source
