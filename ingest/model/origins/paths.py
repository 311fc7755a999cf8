"""Reads one op_name: the path of transformations, control flow and names that JAX writes.

JAX builds an op_name from its name stack: a component for each traced function, each
transformation of one, each `jax.named_scope` and each piece of control flow, and the primitive
at the end. A component is wrapped in the transformations that it went through:
`transpose(jvp(mlp))`. XLA joins the op_names of instructions that it merges.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

# Transformations: `jvp(X)` is X, differentiated. Without a name inside, the component is empty.
TRANSFORMATIONS = (
    "transpose",
    "jvp",
    "vmap",
    "custom_jvp",
    "custom_vjp",
    "remat",
    "checkpoint",
)
DIFFERENTIATING = ("transpose", "jvp")
# Components of loops and conditionals; a branch is `branch_0_fun`.
LOOPS = ("while", "scan")
CONTROL_FLOW = (*LOOPS, "body", "cond")
_BRANCH = re.compile(r"branch_\d+_fun")
# Components of what calls a function and does not compute by itself.
WRAPPERS = (
    "checkpoint",
    "remat",
    "remat2",
    "rematted_computation",
    "closed_call",
    "core_call",
    "core_closed_call",
    "xla_call",
    "pjit",
    "shard_map",
    "custom_jvp_call",
    "custom_jvp_call_jaxpr",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "jit(main)",
    "jit(<lambda>)",
    "jit(<lambda_>)",
)
# A program is `jit(train_step)`, `pmap(step)`, by early JAX `pjit(step)` or `xmap(step)`.
_PROGRAM = re.compile(r"(?:jit|pmap|pjit|xmap)\(.*\)", re.DOTALL)
_PMAP = re.compile(r"pmap\(.*\)", re.DOTALL)

_DROPPED = frozenset((*CONTROL_FLOW, *WRAPPERS, ""))
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}
_SPECIAL = re.compile(r"[()\[\]{}'\"/;:]")
_TRANSFORMED = re.compile(rf"({'|'.join(TRANSFORMATIONS)})\(")


@dataclass(frozen=True)
class Component:
    """One component of an op_name: the name inside, and the transformations around it.

    `is_dropped` marks control flow, a wrapper or an empty name, which name no work. `is_whole`
    says that brackets and quotes close within the component.
    """

    name: str
    transformations: frozenset[str]
    is_dropped: bool
    is_program: bool
    is_whole: bool


def split(text: str) -> tuple[list[str], bool]:
    """The components of an op_name, and whether XLA joined it from several.

    Goes apart at each `/` outside of brackets and quotes. Of the joined `a/b;c/d` it takes
    `a/b`; of `prefix/(x:y)`, which XLA writes for combined collectives, `prefix/x`. A bracket
    or quote that does not close is a character like any other.
    """
    if not _SPECIAL.search(text):
        return [text], False
    closing = _closing(text)
    parts = _ends(text, closing, 0, len(text), ";")
    is_joined = len(parts) > 1
    found: list[str] = []
    waiting = _pieces(text, closing, 0, parts[0])
    while waiting:
        start, end = waiting.pop()
        first_end = _first_of_group(text, closing, start, end)
        if first_end is None:
            found.append(text[start:end])
        else:
            is_joined = True
            waiting += _pieces(text, closing, start + 1, first_end)
    return found, is_joined


def read_component(text: str) -> Component:
    """Take the transformations off a component, and the `[…]` that JAX 0.4 puts at its end."""
    if not _SPECIAL.search(text):
        return Component(text, frozenset(), _is_dropped(text), False, True)
    closing = _closing(text)
    opening = {close: start for start, close in closing.items()}
    low, high = 0, len(text)
    transformations = set()
    while True:
        if text[high - 1 : high] == "]" and low < opening.get(high - 1, low):
            high = opening[high - 1]
        elif (match := _TRANSFORMED.match(text, low, high)) and (
            closing.get(match.end() - 1) == high - 1
        ):
            transformations.add(match[1])
            low, high = match.end(), high - 1
        else:
            break
    name = text[low:high]
    marks = len(_SPECIAL.findall(text)) - len(re.findall("[:/;]", text))
    return Component(
        name,
        frozenset(transformations),
        _is_dropped(name),
        bool(_PROGRAM.fullmatch(text)),
        2 * len(closing) == marks and text[0] != "(",
    )


def _is_dropped(name: str) -> bool:
    return name in _DROPPED or bool(_BRANCH.fullmatch(name) or _PMAP.fullmatch(name))


@dataclass(frozen=True)
class Path:
    """An op_name's path.

    `components` lacks the program's; `scope` holds the names before the last component, by
    `/`; `operation` is the last component's name, mostly the primitive. `has_program` says
    that the op_name starts with a program.
    """

    components: tuple[Component, ...]
    has_program: bool
    is_joined: bool

    @property
    def scope(self) -> str:
        """The names before the last component, joined by `/`."""
        return "/".join(part.name for part in self.components[:-1] if not part.is_dropped)

    @property
    def operation(self) -> str:
        """The last component's name; empty of a program's name alone."""
        return self.components[-1].name if self.components else ""

    @property
    def is_weak(self) -> bool:
        """Whether the last component is control flow or a wrapper."""
        return not self.components or self.components[-1].is_dropped

    @property
    def loops(self) -> int:
        """How many loops lie around the differentiated code: 1 for `while/body/jvp()/mul`."""
        found = 0
        for part in self.components:
            if not part.transformations.isdisjoint(DIFFERENTIATING):
                break
            found += part.name in LOOPS
        return found

    def has(self, transformation: str) -> bool:
        """Whether a component went through this transformation."""
        return any(transformation in part.transformations for part in self.components)

    def has_component(self, name: str) -> bool:
        """Whether a component is this, transformations aside."""
        return any(part.name == name for part in self.components)


# What has no `/` is not by JAX: arguments' names, and XLA's own.
NO_PATH = Path((), False, False)


def read_path(text: str, component: Callable[[str], Component] = read_component) -> Path:
    """Read an op_name. `component` may be a cached `read_component`: components recur."""
    if "/" not in text:
        return NO_PATH
    is_joined = False
    parts = [component(part) for part in text.split("/")]
    if ";" in text or not all(part.is_whole for part in parts):
        texts, is_joined = split(text)
        parts = [component(part) for part in texts]
    has_program = parts[0].is_program
    return Path(tuple(parts[1:] if has_program else parts), has_program, is_joined)


def _closing(text: str) -> dict[int, int]:
    """Where each bracket and each quote that opens and closes does close.

    A quote after a letter or digit is an apostrophe.
    """
    closing: dict[int, int] = {}
    waiting: list[int] = []
    open_count = dict.fromkeys(_OPENING, 0)
    lone = set()
    at = 0
    while match := _SPECIAL.search(text, at):
        place = match.start()
        character = match[0]
        at = place + 1
        if character in _OPENING:
            waiting.append(place)
            open_count[character] += 1
        elif character in "'\"":
            if character in lone or text[place - 1 : place].isalnum():
                continue
            end = text.find(character, at)
            if end < 0:
                lone.add(character)
            else:
                closing[place] = end
                at = end + 1
        elif (opener := _CLOSING.get(character)) and open_count[opener]:
            while text[waiting[-1]] != opener:
                open_count[text[waiting.pop()]] -= 1
            open_count[opener] -= 1
            closing[waiting.pop()] = place
    return closing


def _ends(text: str, closing: dict[int, int], start: int, end: int, separator: str) -> list[int]:
    """Where the parts between `separator` end in `text[start:end]`, nested ones aside."""
    found = []
    at = start
    while match := _SPECIAL.search(text, at, end):
        place = match.start()
        at = closing.get(place, place) + 1
        if match[0] == separator:
            found.append(place)
    return [*found, end]


def _pieces(text: str, closing: dict[int, int], start: int, end: int) -> list[tuple[int, int]]:
    """Where the parts between `/` start and end in `text[start:end]`, the last one first."""
    ends = _ends(text, closing, start, end, "/")
    starts = [start, *(place + 1 for place in ends[:-1])]
    return list(zip(starts, ends, strict=True))[::-1]


def _first_of_group(text: str, closing: dict[int, int], start: int, end: int) -> int | None:
    """Where the first member of a component `(x:y)` ends; None of another component."""
    if text[start : start + 1] != "(" or closing.get(start) != end - 1:
        return None
    members = _ends(text, closing, start + 1, end - 1, ":")
    return members[0] if len(members) > 1 else None
