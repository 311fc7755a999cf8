"""In which pass of training each value is made: the rules of attribution for passes, in order.

A pass is of two instructions: the one that makes a value, and its origin.
"""

import re
from collections import defaultdict

from .plain_answers import Origin
from .plain_names import JOINED, components, has_component, has_transformation
from .plain_origins import Rules
from .plain_text import Instruction, Position, attribute_names, called

ARGUMENT, FORWARD, BACKWARD = "argument", "forward", "backward"
REMATERIALISED, OPTIMIZER, OTHER = "rematerialised", "optimizer", "other"
# What runs the computations that it calls; others call reducers.
RUNS = (
    "fusion",
    "while",
    "conditional",
    "call",
    "async-start",
)
MOVES = (
    *("get-tuple-element", "tuple", "bitcast", "copy", "copy-start", "copy-done"),
    *("optimization-barrier", "domain", "add-dependency", "async-update", "async-done"),
    *("all-gather-done", "all-reduce-done", "collective-permute-done"),
)
CLONE = re.compile(r"\.remat\d*(\.|$)")


def loops_around(path: str) -> int:
    """How many loops lie around the differentiated code of a path."""
    found = 0
    for part in components(path):
        if {"transpose", "jvp"} & set(part.transformations):
            break
        found += part.name in ("while", "scan")
    return found


class Passes:
    """The rules for passes on one module."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.ways, self.names = rules, rules.ways, rules.names
        self.module = rules.module
        every = list(self.module.instructions.values())
        paths = {path for x in every if (path := self.path(x))}
        self.differentiates = any(has_transformation(path, "transpose") for path in paths)
        # JAX up to 0.6 calls every program `main` and drops an empty `jvp()`.
        self.is_old = any("/jit(main)/" in self.names.op_name(x) for x in every)
        self.main = self.main_computations()
        self.depends = {name for main in self.main for name in self.depending(main)}
        self.after = self.after_backward()
        self.outside = {
            line
            for x in every
            if (line := self.names.line(x)) and self.by_name(x) != ARGUMENT
            if (at := self.place(x)).name in self.depends and at.name not in self.after
        }
        self.readers: dict[str, list[Instruction]] = defaultdict(list)
        for x in every:
            for operand in dict.fromkeys(x.operands):
                self.readers[operand].append(x)
        self.passes: dict[str, str] = {}

    def of(self, value: Position, origin: Origin) -> str:
        """The pass of a value: of what makes it (m) and of its origin (y).

        Decision: if the origin is a guess, a joined name of what makes the value tells the pass.
        """
        y = self.module.instructions[origin.instruction]
        maker = self.module.instructions[value[0]]
        if origin.rule == "operand" and self.names.kind(maker) == JOINED:
            y = maker
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
        if (told := self.by_name(y)) is not None:
            return told
        if not self.differentiates:
            return OTHER
        # Rule 7: the pass of the nearest caller that has a path of its own.
        while y.computation not in self.main and self.says_no_path(y):
            caller = self.caller(y)
            if caller is None:
                break
            y = caller
            if (told := self.by_name(y)) is not None:
                return told
        return self.by_place(y)

    def caller(self, x: Instruction) -> Instruction | None:
        """What calls the computation of an instruction; none of the entry."""
        return None if x.computation == self.module.entry else self.ways.caller(x.computation)

    def path(self, x: Instruction) -> str:
        """The op_name of an instruction, if it is a path."""
        return "" if self.names.kind(x) in ("argument", "xla-made") else self.names.op_name(x)

    def by_name(self, x: Instruction) -> str | None:
        """Rules 1 to 5: an argument, a clone, or what the path says."""
        if self.ways.is_argument((x.name, ())):
            return ARGUMENT
        if CLONE.search(x.name):
            return REMATERIALISED
        return self.by_path(x)

    def by_path(self, x: Instruction) -> str | None:
        """Rules 3 to 5: what the components of the path say."""
        path = self.path(x)
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
        return kind in ("none", "argument", "xla-made") or self.names.continues(x)

    # Rule 8: the place in the graph.

    def by_place(self, y: Instruction) -> str:
        """After the backward pass, in it, or before it.

        Decision: a loop that holds backward instructions is backward, unless it is looked into.
        """
        at = self.place(y)
        if at.name in self.after:
            line = self.names.line(y)
            if self.is_old and line and line in self.outside:
                return BACKWARD
        if at.opcode == "while" and self.is_main(at) and self.holds_in_body(at):
            return BACKWARD
        if at.name in self.after:
            return OPTIMIZER
        return OPTIMIZER if self.feeds_optimizer(at) else FORWARD

    def place(self, x: Instruction) -> Instruction:
        """The instruction of a main computation that an instruction is in or under."""
        while x.computation not in self.main and (caller := self.caller(x)) is not None:
            x = caller
        return x

    def main_computations(self) -> list[str]:
        """The entry, and the bodies of loops over whole steps or microbatches.

        Decision: such a body is looked into like the entry. It is that of a loop in a main
        computation with a path that has as many loops around its differentiated code.
        """
        main = level = [self.module.entry]
        depth = 1
        while level:
            bodies = [
                name
                for computation in level
                for x in self.module.computations[computation].instructions
                if x.opcode == "while"
                for name in (*attribute_names(x, "condition"), *attribute_names(x, "body"))
            ]
            level = [name for name in bodies if self.holds(name, depth, set())]
            main, depth = main + level, depth + 1
        return list(dict.fromkeys(main))

    def holds(self, computation: str, depth: int, seen: set[str]) -> bool:
        """Whether a computation or what it calls is backward, inside of `depth` loops at least.

        Decision: reducers do not count, instructions of different passes share them.
        """
        if computation in seen:
            return False
        seen.add(computation)
        for x in self.module.computations[computation].instructions:
            is_backward = self.by_name(x) == BACKWARD
            if is_backward and loops_around(self.names.op_name(x)) >= depth:
                return True
            if x.opcode in RUNS and any(self.holds(name, depth, seen) for name in called(x)):
                return True
        return False

    def depending(self, computation: str) -> set[str]:
        """The instructions of a computation that depend on a parameter of it.

        Decision: constants do not spread the optimizer's reach, XLA shares the backward pass's
        with the forward pass.
        """
        found: set[str] = set()
        for x in self.module.computations[computation].instructions:
            if x.opcode == "parameter" or found & set(x.operands):
                found.add(x.name)
        return found

    def after_backward(self) -> set[str]:
        """Main instructions that are backward, contain it, or come of one that does.

        Decision: what is rematerialised does not count.
        """
        found: set[str] = set()
        for computation in self.main:
            for x in self.module.computations[computation].instructions:
                starts = self.by_name(x) == BACKWARD or self.holds_backward(x)
                if (starts and x.name in self.depends) or found & set(x.operands):
                    found.add(x.name)
        return found

    def holds_backward(self, x: Instruction) -> bool:
        """Whether what an instruction calls is backward."""
        return x.opcode in RUNS and any(self.holds(name, 0, set()) for name in called(x))

    def is_main(self, x: Instruction) -> bool:
        """Whether an instruction is in a main computation."""
        return x.computation in self.main

    def holds_in_body(self, x: Instruction) -> bool:
        """Whether a loop that is not looked into holds backward instructions."""
        return any(self.holds(name, 0, set()) for name in called(x) if name not in self.main)

    def feeds_optimizer(self, at: Instruction) -> bool:
        """Whether only the optimizer reads a main instruction, moves followed, loops not.

        Decision: what the program gives back is no reader; nothing but that is not enough.
        """
        if at.opcode == "while" or not self.is_undecided(at):
            return False
        readers = self.readers_of(at)
        return bool(readers) and all(self.is_optimizer(x) for x in readers)

    def readers_of(self, at: Instruction) -> list[Instruction]:
        """Who reads an instruction, through what only moves it."""
        result = []
        for x in self.readers[at.name]:
            result += self.readers_of(x) if x.opcode in MOVES else [x]
        return list({x.name: x for x in result}.values())

    def is_undecided(self, x: Instruction) -> bool:
        """Whether a main instruction's name does not tell its pass."""
        return x.computation in self.main and self.by_name(x) is None

    def is_optimizer(self, x: Instruction) -> bool:
        """Whether a reader belongs to the optimizer: by where it is."""
        if x.opcode == "while" or not self.is_undecided(x):
            return False
        if x.name in self.after:
            return self.by_place(x) == OPTIMIZER
        return self.feeds_optimizer(x)
