"""What the op_names of a module say: their kind, their scope, their transformations.

JAX names an operation by its path (`jit(f)/jvp()/while/body/mul`); XLA keeps the path as op_name,
joins two of them, or makes up a short one. This file tells these apart, one name at a time.
"""

import re
from dataclasses import dataclass

from .plain_text import LINE, Instruction, Module, joined, read_module

NONE, ARGUMENT, XLA_MADE = "none", "argument", "xla-made"
JOINED, WEAK, STRONG = "joined", "weak", "strong"

TRANSFORMATION = re.compile(
    r"^(transpose|jvp|vmap|custom_jvp|custom_vjp|remat|checkpoint)\((.*)\)$", re.DOTALL
)
CONTROL_FLOW = re.compile(r"^(while|body|cond|scan|branch_\d+_fun)$")
WRAPPER = re.compile(
    r"^(checkpoint|rematted_computation|closed_call|remat|remat2|pjit|core_call|xla_call|shard_map"
    r"|custom_jvp_call|custom_vjp_call|custom_vjp_call_jaxpr|jit\(<lambda>\)|jit\(main\)"
    r"|pmap\(.*\)|)$"
)
PROGRAM = re.compile(r"^(jit|pmap)\(.*\)$")
# What holds no result of its own, whatever it is called.
NEVER_OWN = ("while", "conditional", "call", "tuple", "get-tuple-element", "parameter")


@dataclass(frozen=True)
class Metadata:
    """What the text says of an instruction in quotes: its name, its line, its kernel."""

    op_name: str = ""
    # `zoo.py:35`: the innermost frame, without its folder.
    line: str = ""
    target: str = ""


@dataclass(frozen=True)
class Component:
    """One part of a path: what is left of it, and the transformations taken off, outer first."""

    name: str
    transformations: tuple[str, ...]


def pieces(text: str, separator: str) -> list[str]:
    """The parts between separators that stand in no bracket and in no quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(0, depth - 1)
    return [*parts, text[start:]]


def merged(part: str) -> str:
    """The first name of `(x:y)`; nothing if the part is not of this form."""
    if not (part.startswith("(") and part.endswith(")")):
        return ""
    both = pieces(part[1:-1], ":")
    return both[0] if len(both) > 1 else ""


def is_joined(op_name: str) -> bool:
    """Whether XLA made one name of several."""
    return len(pieces(op_name, ";")) > 1 or any(merged(part) for part in pieces(op_name, "/"))


def components(op_name: str) -> list[Component]:
    """The parts of a path (of the first one, if several are joined)."""
    result = []
    for part in pieces(pieces(op_name, ";")[0], "/"):
        if first := merged(part):
            # What stands before the bracket belongs to every name in it.
            return result + components(first)
        result.append(unwrapped(part))
    return result


def unwrapped(part: str) -> Component:
    """Take the parameters (`while[…]`) and then the transformations off a part."""
    transformations = []
    part = without_parameters(part)
    while (match := TRANSFORMATION.match(part)) is not None:
        transformations.append(match[1])
        part = without_parameters(match[2])
    return Component(part, tuple(transformations))


def without_parameters(part: str) -> str:
    """The part without the square brackets at its end."""
    if not part.endswith("]"):
        return part
    depth = 0
    for at in range(len(part) - 1, -1, -1):
        depth += (part[at] == "]") - (part[at] == "[")
        if depth == 0:
            # A path never begins with brackets; an argument's name may be nothing but an index.
            return part[:at] if at else part
    return part


def says_nothing(component: Component) -> bool:
    """Whether a component is control flow, a wrapper, or empty once it is unwrapped."""
    return bool(CONTROL_FLOW.match(component.name) or WRAPPER.match(component.name))


def is_relative(op_name: str) -> bool:
    """Whether the path does not begin with the program: XLA cut its beginning off."""
    return not PROGRAM.match(pieces(op_name, "/")[0])


def scope_and_operation(op_name: str) -> tuple[list[str], str]:
    """The names on the path, and the operation at its end."""
    parts = components(op_name)
    if parts and not is_relative(op_name):
        parts = parts[1:]
    if not parts:
        return [], ""
    return [part.name for part in parts[:-1] if not says_nothing(part)], parts[-1].name


def has_transformation(op_name: str, transformation: str) -> bool:
    """Whether a component of the path was made by a transformation of JAX."""
    return any(transformation in part.transformations for part in components(op_name))


def has_component(op_name: str, name: str) -> bool:
    """Whether a component of the path is called so."""
    return any(part.name == name for part in components(op_name))


class Names:
    """The names of one module's instructions."""

    def __init__(self, text: str) -> None:
        self.module = read_plain(text)
        self.metadata = read_metadata(text)
        entry = self.module.computations[self.module.entry]
        self.arguments: dict[str, str] = {}
        for x in entry.instructions:
            name = self.op_name(x)
            if x.opcode == "parameter" and name:
                self.arguments.setdefault(name, x.name)
        self.kinds: dict[str, str] = {}
        paths = {self.op_name(x) for x in self.module.instructions.values()} - {""}
        self.is_jax = not all(is_relative(path) for path in paths)

    def op_name(self, x: Instruction) -> str:
        """The op_name of an instruction; empty if it has none."""
        return self.metadata[x.name].op_name

    def line(self, x: Instruction) -> str:
        """`file:line` of an instruction; empty if the text does not say."""
        return self.metadata[x.name].line

    def kind(self, x: Instruction) -> str:
        """The kind of an instruction's op_name."""
        name = self.op_name(x)
        if name not in self.kinds:
            self.kinds[name] = self.kind_of(name)
        return self.kinds[name]

    def kind_of(self, op_name: str) -> str:
        """The kind of an op_name, the first that fits.

        Decision: in a program without any path of JAX, a name without a number is an operation's.

        Decision: a path that begins with the program is no argument's name, though a parameter
        has it: XLA can turn what moves a parameter into the parameter.
        """
        if not op_name:
            return NONE
        if op_name in self.arguments and is_relative(op_name):
            return ARGUMENT
        if "/" not in op_name:
            is_own = self.is_jax or re.search(r"\.\d+$", op_name)
            return XLA_MADE if is_own else STRONG
        if is_joined(op_name):
            return JOINED
        return WEAK if says_nothing(components(op_name)[-1]) else STRONG

    def scope(self, x: Instruction) -> list[str]:
        """The names on an instruction's path; a relative path goes on where its caller's ends.

        Decision: a name that XLA made has no scope, and a caller without a path is passed over.
        """
        if self.kind(x) in (ARGUMENT, XLA_MADE):
            return []
        scope, _ = scope_and_operation(self.op_name(x))
        if self.kind(x) != NONE and not self.continues(x):
            return scope
        return self.scope_around(x.computation) + scope

    def continues(self, x: Instruction) -> bool:
        """Whether an instruction's path lacks the program that other paths begin with."""
        return self.is_jax and is_relative(self.op_name(x))

    def scope_around(self, computation: str) -> list[str]:
        """The scope of what calls a computation."""
        if computation == self.module.entry or not self.module.callers.get(computation):
            return []
        caller = self.module.callers[computation][0]
        if self.kind(caller) in (NONE, ARGUMENT, XLA_MADE):
            return self.scope_around(caller.computation)
        return self.scope(caller)

    def is_strong(self, x: Instruction) -> bool:
        """Whether an instruction's name says what it computes, and it computes."""
        return x.opcode not in NEVER_OWN and self.kind(x) == STRONG

    def is_second_best(self, x: Instruction) -> bool:
        """Whether a name is there that is better than none, but no better than that."""
        return self.kind(x) in (WEAK, JOINED)


# Reading the text.


def read_plain(text: str) -> Module:
    """The module; who owns what does not depend on whether its order is the schedule."""
    head, _, rest = text.partition("\n")
    if "is_scheduled=true" not in head:
        head += ", is_scheduled=true"
    return read_module(head + "\n" + rest)


TABLE_LINE = re.compile(r"^(\d+) (.*)$")


def read_metadata(text: str) -> dict[str, Metadata]:
    """From an instruction's name to its metadata."""
    lines = text.splitlines()
    frames = read_frames(lines)
    result = {}
    for line in joined(lines[1:]):
        if (match := LINE.match(line)) is not None:
            result[match[2]] = metadata_of(match[3], frames)
    return result


def metadata_of(text: str, frames: dict[str, str]) -> Metadata:
    """What a line says in quotes; its source is a stack frame or a file and a line."""
    start = text.find("metadata={")
    inside = text[start:] if start >= 0 else ""
    line = ""
    if (frame := re.search(r"\bstack_frame_id=(\d+)", inside)) is not None:
        line = frames.get(frame[1], "")
    elif (number := re.search(r"\bsource_line=(\d+)", inside)) is not None:
        line = f"{quoted(inside, 'source_file').split('/')[-1]}:{number[1]}"
    return Metadata(quoted(inside, "op_name"), line, quoted(text, "custom_call_target"))


def quoted(text: str, key: str) -> str:
    """What stands in quotes after `key=`, without its backslashes."""
    match = re.search(rf'\b{key}="((?:[^"\\]|\\.)*)"', text)
    return re.sub(r"\\(.)", r"\1", match[1]) if match else ""


def read_frames(lines: list[str]) -> dict[str, str]:
    """From a stack frame's number to its `file:line`."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in lines:
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = tables[line] = {}
        elif (match := TABLE_LINE.match(line)) is not None:
            table[match[1]] = match[2]
        elif line.endswith("{"):
            table = {}
    result = {}
    for number, frame in tables.get("StackFrames", {}).items():
        location = tables["FileLocations"][field_of(frame, "file_location_id")]
        name = tables["FileNames"][field_of(location, "file_name_id")].strip('"')
        result[number] = f"{name.split('/')[-1]}:{field_of(location, 'line')}"
    return result


def field_of(text: str, key: str) -> str:
    """A number in braces."""
    match = re.search(rf"\b{key}=(\d+)", text)
    return match[1] if match else ""
