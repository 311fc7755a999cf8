"""In which pass of training each value is made: the rules of attribution for passes, in order.

A pass is of two instructions: the one that makes a value, and its origin.
"""

import re
from collections import defaultdict

from .plain_answers import Origin
from .plain_names import has_component, has_transformation, is_relative
from .plain_origins import Rules
from .plain_text import Instruction, Position, called
from .plain_ways import Ways

ARGUMENT, FORWARD, BACKWARD = "argument", "forward", "backward"
REMATERIALISED, OPTIMIZER, OTHER = "rematerialised", "optimizer", "other"
CLONE = re.compile(r"\.remat\d*(\.|$)")


def passes(text: str) -> dict[Position, str]:
    """The pass of every array value that has an origin."""
    rules = Rules(Ways(text))
    found = Passes(rules)
    result = {}
    for value in rules.ways.array_values():
        if (origin := rules.origin(value)) is not None:
            result[value] = found.of(value, origin)
    return result


class Passes:
    """The rules for passes on one module."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names
        self.module = rules.module
        self.entry = self.module.computations[self.module.entry]
        every = list(self.module.instructions.values())
        paths = {name for x in every if (name := self.names.op_name(x))}
        self.differentiates = any(has_transformation(path, "transpose") for path in paths)
        # JAX up to 0.6 calls every program `main` and drops an empty `jvp()`.
        self.is_old = any("/jit(main)/" in path for path in paths)
        self.after = self.after_backward()
        self.outside = {
            line
            for x in every
            if (line := self.names.line(x))
            and (at := self.at_entry(x))
            and at.name not in self.after
        }
        self.readers: dict[str, list[Instruction]] = defaultdict(list)
        for x in self.entry.instructions:
            for operand in dict.fromkeys(x.operands):
                self.readers[operand].append(x)
        self.passes: dict[str, str] = {}

    def of(self, value: Position, origin: Origin) -> str:
        """The pass of a value: of what makes it (m) and of its origin (y)."""
        y = self.module.instructions[origin.instruction]
        if self.ways.is_argument((y.name, ())):
            return ARGUMENT
        if CLONE.search(value[0]):
            return REMATERIALISED
        return self.of_instruction(y)

    def of_instruction(self, y: Instruction) -> str:
        """The pass of an instruction by itself."""
        if y.name not in self.passes:
            self.passes[y.name] = self.told(y)
        return self.passes[y.name]

    def told(self, y: Instruction) -> str:
        """The first rule that applies."""
        if self.ways.is_argument((y.name, ())):
            return ARGUMENT
        if (told := self.by_name(y)) is not None:
            return told
        if not self.differentiates:
            return OTHER
        if self.says_no_path(y) and (told := self.by_caller(y)) is not None:
            return told
        return self.by_place(y)

    def by_name(self, x: Instruction) -> str | None:
        """Rules 2 to 5: a clone, or what the path says."""
        if CLONE.search(x.name):
            return REMATERIALISED
        return self.by_path(x)

    def by_path(self, x: Instruction) -> str | None:
        """Rules 3 to 5: what the components of the path say."""
        path = self.names.op_name(x)
        if has_component(path, "rematted_computation"):
            return REMATERIALISED
        if has_transformation(path, "transpose"):
            return BACKWARD
        return FORWARD if has_transformation(path, "jvp") else None

    def says_no_path(self, x: Instruction) -> bool:
        """Whether an instruction has no op_name that begins with the program.

        Decision: a name that XLA made counts as none here too.
        """
        kind = self.names.kind(x)
        return kind in ("none", "argument", "xla-made") or is_relative(self.names.op_name(x))

    def by_caller(self, x: Instruction) -> str | None:
        """Rule 7: the pass of the nearest caller whose own name says one."""
        seen = set()
        while (caller := self.ways.caller(x.computation)) is not None and caller.name not in seen:
            seen.add(caller.name)
            if (told := self.by_name(caller)) is not None:
                return told
            x = caller
        return None

    def at_entry(self, x: Instruction) -> Instruction | None:
        """The entry instruction that an instruction is in or under."""
        following: Instruction | None = x
        seen = set()
        while following is not None and following.computation != self.module.entry:
            if following.name in seen:
                return None
            seen.add(following.name)
            following = self.ways.caller(following.computation)
        return following

    def by_place(self, y: Instruction) -> str:
        """Rule 8: after the backward pass, or before it."""
        at = self.at_entry(y)
        if at is None:
            return FORWARD
        if at.name in self.after:
            line = self.names.line(y)
            return BACKWARD if self.is_old and line and line in self.outside else OPTIMIZER
        return OPTIMIZER if self.feeds_optimizer(at) else FORWARD

    def after_backward(self) -> set[str]:
        """Entry instructions that are backward, contain it, or come of one that does.

        Decision: what counts is a `transpose(` in the path, also in what is rematerialised: a
        clone of a backward instruction and a computation done again come before the optimizer.
        """
        found: set[str] = set()
        for x in self.entry.instructions:
            if self.holds_backward(x, set()) or any(name in found for name in x.operands):
                found.add(x.name)
        return found

    def holds_backward(self, x: Instruction, seen: set[str]) -> bool:
        """Whether an instruction or what it calls is backward."""
        if has_transformation(self.names.op_name(x), "transpose"):
            return True
        for name in called(x):
            if name not in seen and name in self.module.computations:
                seen.add(name)
                inside = self.module.computations[name].instructions
                if any(self.holds_backward(below, seen) for below in inside):
                    return True
        return False

    def feeds_optimizer(self, at: Instruction) -> bool:
        """Whether only the optimizer reads an entry instruction, moves followed, loops not.

        Decision: what the program gives back is no reader; nothing but that is not enough.
        """
        readers = self.readers_of(at, set())
        return bool(readers) and all(self.is_optimizer(x) for x in readers)

    def readers_of(self, at: Instruction, seen: set[str]) -> list[Instruction]:
        """Who reads an instruction, through what only moves it."""
        result = []
        for x in self.readers[at.name]:
            if x.name in seen:
                continue
            seen.add(x.name)
            moves = x.opcode == "tuple" or self.ways.moved((x.name, ())) is not None
            if moves and x.opcode not in ("call", "async-start"):
                result += self.readers_of(x, seen)
            else:
                result.append(x)
        return result

    def is_optimizer(self, x: Instruction) -> bool:
        """Whether a reader belongs to the optimizer: by its name, else by where it is."""
        if x.opcode in ("while", "conditional"):
            return False
        told = self.by_name(x)
        if told is None and self.says_no_path(x):
            told = self.by_caller(x)
        return (told or self.by_place(x)) == OPTIMIZER
