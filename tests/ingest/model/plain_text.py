"""Scheduled HLO text as a module of plain dataclasses, for the plain rules.

A position is (instruction, index): `index` leads into the instruction's shape, `()` is all of it.
A value is named by the position that defines it.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

Index = tuple[int, ...]
Position = tuple[str, Index]
# An array's shape is its text; a tuple's shape is a Python tuple of shapes.
Shape = str | tuple["Shape", ...]


class NoRuleError(Exception):
    """The text holds something that no rule here covers."""


# Reading the text.


@dataclass
class Instruction:
    """One line of HLO text."""

    name: str
    shape: Shape
    opcode: str
    operands: list[str]
    # What stands between the parentheses, and what stands after them.
    inside: str
    attributes: str
    computation: str
    is_root: bool


@dataclass
class Computation:
    """The instructions between two braces, in the order of the text."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def root(self) -> Instruction:
        return next(x for x in self.instructions if x.is_root)

    def parameter(self, number: int) -> Instruction:
        """The parameter with this number."""
        parameters = (x for x in self.instructions if x.opcode == "parameter")
        return next(x for x in parameters if int(x.inside) == number)


@dataclass
class Module:
    """All computations, and what the header says."""

    computations: dict[str, Computation]
    entry: str
    # (output index, parameter number, index in the parameter)
    input_output_alias: list[tuple[Index, int, Index]]

    def __post_init__(self) -> None:
        found = [x for c in self.computations.values() for x in c.instructions]
        self.instructions = {x.name: x for x in found}
        if len(self.instructions) != len(found):
            raise NoRuleError("two instructions have one name")
        self.callers: dict[str, list[Instruction]] = defaultdict(list)
        for x in found:
            for callee in called(x):
                self.callers[callee].append(x)


STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"/\*.*?\*/")
HEADER = re.compile(r"^(ENTRY )?%?([\w.-]+)( \(.*\) -> .*)? \{$")
LINE = re.compile(r"^\s+(ROOT )?%?([\w.-]+) = (.*)$")
PAIR = re.compile(r"\{([\d, ]*)\}: ?\((\d+), ?\{([\d, ]*)\}")


def read_module(text: str) -> Module:
    """Take the text apart; refuse it if its order is not the schedule."""
    lines = text.splitlines()
    if "is_scheduled=true" not in lines[0]:
        raise NoRuleError("the module is not scheduled")
    computations: dict[str, Computation] = {}
    entry, current = "", None
    for line in joined(lines[1:]):
        if (head := HEADER.match(line)) is not None:
            current = computations[head[2]] = Computation(head[2])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (match := LINE.match(line)) is not None:
            instruction = read_instruction(match[2], match[3], current.name, bool(match[1]))
            current.instructions.append(instruction)
    header = STRING.sub('""', lines[0])
    return Module(computations, entry, pairs_of("input_output_alias", header))


def joined(lines: list[str]) -> list[str]:
    """The lines, where a constant that goes over several lines is one again."""
    result: list[str] = []
    inside = False
    for line in lines:
        line = COMMENT.sub("", line)
        if HEADER.match(line):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and not LINE.match(line):
            result[-1] += line
            continue
        result.append(line)
    return result


def read_instruction(name: str, text: str, computation: str, is_root: bool) -> Instruction:
    """Take apart what stands to the right of the equals sign."""
    # Names of callees never stand in strings; metadata and backend configurations do.
    text = STRING.sub('""', text)
    shape, at = read_shape(text, 0)
    opcode, _, _ = text[at + 1 :].partition("(")
    start = at + 1 + len(opcode) + 1
    end = matching(text, start - 1)
    inside = text[start:end]
    operands = []
    if opcode not in ("parameter", "constant"):
        operands = [part.split()[-1].lstrip("%") for part in split_commas(inside)]
    return Instruction(name, shape, opcode, operands, inside, text[end + 1 :], computation, is_root)


def matching(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if depth == 0:
            return at
    raise NoRuleError("a bracket does not close")


def split_commas(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, start, depth = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def read_shape(text: str, at: int) -> tuple[Shape, int]:
    """The shape that starts at `at`, and where it ends."""
    if text[at] == "(":
        end = matching(text, at)
        parts = split_commas(text[at + 1 : end])
        return tuple(read_shape(part.strip(), 0)[0] for part in parts), end + 1
    depth, end = 0, at
    while end < len(text) and (depth or text[end] != " "):
        depth += (text[end] in "({[") - (text[end] in ")}]")
        end += 1
    return text[at:end], end


def pairs_of(attribute: str, text: str) -> list[tuple[Index, int, Index]]:
    """What `attribute={ {o}: (n, {i}, …), … }` says."""
    start = text.find(attribute + "={")
    if start < 0:
        return []
    start += len(attribute) + 1
    found = PAIR.findall(text[start : matching(text, start) + 1])
    return [(read_index(out), int(number), read_index(into)) for out, number, into in found]


def read_index(text: str) -> Index:
    """`1, 0` as an index."""
    return tuple(int(part) for part in text.split(",") if part.strip())


def attribute_names(instruction: Instruction, key: str) -> list[str]:
    """The computations that an attribute names, in its order."""
    match = re.search(rf"\b{key}=(\{{[^}}]*\}}|%?[\w.-]+)", instruction.attributes)
    return re.findall(r"[\w.-]+", match[1]) if match else []


CALLS = (
    *("calls", "to_apply", "condition", "body", "branch_computations"),
    *("true_computation", "false_computation", "called_computations", "select", "scatter"),
)


def called(instruction: Instruction) -> list[str]:
    """All computations that an instruction names."""
    return [name for key in CALLS for name in attribute_names(instruction, key)]


def branches(instruction: Instruction) -> list[str]:
    """The branches of a conditional, in order."""
    both = ("branch_computations", "true_computation", "false_computation")
    return [name for key in both for name in attribute_names(instruction, key)]


def sub_shapes(shape: Shape, index: Index = ()) -> dict[Index, Shape]:
    """Every index of a shape, with what lies there."""
    result = {index: shape}
    if isinstance(shape, tuple):
        for number, part in enumerate(shape):
            result |= sub_shapes(part, (*index, number))
    return result


def is_array(shape: Shape) -> bool:
    """Whether a shape is no tuple."""
    return isinstance(shape, str)
