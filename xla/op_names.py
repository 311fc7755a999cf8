"""The path in an op_name: transformations, control flow, scopes and the primitive.

JAX builds an op_name from its name stack: a component for each traced function, each
transformation of one, each `jax.named_scope` and each piece of control flow, and the primitive
at the end. A component is wrapped in the transformations that it went through:
`transpose(jvp(mlp))`. XLA joins the op_names of instructions that it merges.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

# `jvp(X)` is X, differentiated. Without a name inside, the component is empty.
_TRANSFORMATIONS = ("transpose", "jvp", "vmap", "custom_jvp", "custom_vjp", "remat", "checkpoint")
_DIFFERENTIATING = frozenset(("transpose", "jvp"))
# Other frameworks: TensorFlow puts the gradient of `dense/MatMul` at
# `gradient_tape/dense/MatMul`, PyTorch/XLA calls that of `aten__relu` `aten__threshold_backward`.
GRADIENT_TAPE = "gradient_tape"
_TORCH_BACKWARD = re.compile(r"aten__\w+_backward(?:_data)?(?:\.\d+)?")
_LOOPS = ("while", "scan")
_CONTROL_FLOW = (*_LOOPS, "body", "cond")
_BRANCH = re.compile(r"branch_\d+_fun")
# These call a function and do not compute by themselves.
_WRAPPERS = """
    checkpoint remat remat2 rematted_computation closed_call core_call eval_jaxpr core_closed_call
    xla_call pjit shard_map custom_jvp_call custom_jvp_call_jaxpr custom_vjp_call
    custom_vjp_call_jaxpr jit(main) jit(<lambda>) jit(<lambda_>)
"""
# A program is `jit(train_step)`, `pmap(step)`, by early JAX `pjit(step)` or `xmap(step)`.
_PROGRAM = re.compile(r"(?:jit|pmap|pjit|xmap)\(.*\)", re.DOTALL)
_PMAP = re.compile(r"pmap\(.*\)", re.DOTALL)

_DROPPED = frozenset((*_CONTROL_FLOW, *_WRAPPERS.split(), GRADIENT_TAPE, ""))
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}
_SPECIAL = re.compile(r"[()\[\]{}'\"/;:]")
_TRANSFORMED = re.compile(rf"({'|'.join(_TRANSFORMATIONS)})\(")


@dataclass(frozen=True, slots=True)
class Component:
    """One component of an op_name.

    Attributes:
        name: the component without its transformations.
        transformations: the names of the transformations around it.
        is_dropped: whether it names no work: control flow, a wrapper or an empty name.
        is_program: whether it is a program, such as `jit(train_step)`.
        is_balanced: whether all its brackets and quotes are closed within it.
    """

    name: str
    transformations: frozenset[str]
    is_dropped: bool
    is_program: bool
    is_balanced: bool


@dataclass(frozen=True, slots=True)
class Path:
    """The path in an op_name.

    Attributes:
        components: in order, without the program.
        has_program: whether the op_name starts with a program.
        is_joined: whether XLA joined it from several op_names; it is then the path of the first.
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
        """The last component's name, mostly the primitive; empty for a program alone."""
        return self.components[-1].name if self.components else ""

    @property
    def is_weak(self) -> bool:
        """Whether the last component is control flow or a wrapper."""
        return not self.components or self.components[-1].is_dropped

    @property
    def loop_count(self) -> int:
        """Number of loops around the differentiated code: 1 for `while/body/jvp()/mul`."""
        count = 0
        for part in self.components:
            if not part.transformations.isdisjoint(_DIFFERENTIATING):
                break
            count += part.name in _LOOPS
        return count

    def has_transformation(self, name: str) -> bool:
        """Whether a component went through this transformation."""
        return any(name in part.transformations for part in self.components)

    def has_component(self, name: str) -> bool:
        """Whether a component has this name, transformations aside."""
        return any(name == part.name for part in self.components)


# Names without a `/` are not JAX's: arguments' names, and XLA's own.
NO_PATH = Path((), False, False)


def read_path(text: str) -> Path:
    """Parse an op_name. Without a `/` it has no path."""
    if "/" not in text:
        return NO_PATH
    is_joined = False
    parts = [read_component(part) for part in text.split("/")]
    if ";" in text or not all(part.is_balanced for part in parts):
        texts, is_joined = split(text)
        parts = [read_component(part) for part in texts]
    has_program = parts[0].is_program
    return Path(tuple(parts[1:] if has_program else parts), has_program, is_joined)


# A few components occur in thousands of op_names.
@lru_cache(maxsize=4096)
def read_component(text: str) -> Component:
    """Remove the transformations around a component, and the `[…]` that JAX 0.4 puts at its end.

    >>> part = read_component("transpose(jvp(mlp))")
    >>> part.name, sorted(part.transformations)
    ('mlp', ['jvp', 'transpose'])
    """
    if not _SPECIAL.search(text):
        is_backward = text == GRADIENT_TAPE or _TORCH_BACKWARD.fullmatch(text)
        backward = frozenset(["transpose"] if is_backward else [])
        return Component(text, backward, _is_dropped(text), False, True)
    closing = _match_brackets(text)
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
    bracket_count = len(_SPECIAL.findall(text)) - len(re.findall("[:/;]", text))
    return Component(
        name,
        frozenset(transformations),
        _is_dropped(name),
        bool(_PROGRAM.fullmatch(text)),
        2 * len(closing) == bracket_count and text[0] != "(",
    )


def _is_dropped(name: str) -> bool:
    return name in _DROPPED or bool(_BRANCH.fullmatch(name) or _PMAP.fullmatch(name))


def split(text: str) -> tuple[list[str], bool]:
    """Split an op_name at each `/` outside of brackets and quotes.

    Returns the components, and whether XLA joined the op_name from several. Of `a/b;c/d` the
    result is that of `a/b`; of `prefix/(x:y)`, which XLA writes for combined collectives, that of
    `prefix/x`. A bracket or quote that does not close is a character like any other.
    """
    if not _SPECIAL.search(text):
        return [text], False
    closing = _match_brackets(text)
    ends = _ends_of_parts(text, closing, 0, len(text), ";")
    is_joined = len(ends) > 1
    components: list[str] = []
    stack = _ranges_of_components(text, closing, 0, ends[0])
    while stack:
        start, end = stack.pop()
        first_end = _end_of_first_member(text, closing, start, end)
        if first_end is None:
            components.append(text[start:end])
        else:
            is_joined = True
            stack += _ranges_of_components(text, closing, start + 1, first_end)
    return components, is_joined


def _match_brackets(text: str) -> dict[int, int]:
    """The closing position of each bracket and quote that closes, by its opening position.

    A quote after a letter or digit is an apostrophe.
    """
    closing: dict[int, int] = {}
    stack: list[int] = []
    open_count = dict.fromkeys(_OPENING, 0)
    unclosed_quotes = set()
    start = 0
    while match := _SPECIAL.search(text, start):
        position = match.start()
        character = match[0]
        start = position + 1
        if character in _OPENING:
            stack.append(position)
            open_count[character] += 1
        elif character in "'\"":
            if character in unclosed_quotes or text[position - 1 : position].isalnum():
                continue
            end = text.find(character, start)
            if end < 0:
                unclosed_quotes.add(character)
            else:
                closing[position] = end
                start = end + 1
        elif (opener := _CLOSING.get(character)) and open_count[opener]:
            while text[stack[-1]] != opener:
                open_count[text[stack.pop()]] -= 1
            open_count[opener] -= 1
            closing[stack.pop()] = position
    return closing


def _ends_of_parts(
    text: str, closing: dict[int, int], start: int, end: int, separator: str
) -> list[int]:
    """The ends of the parts of `text[start:end]` between separators outside of brackets."""
    ends = []
    while match := _SPECIAL.search(text, start, end):
        position = match.start()
        start = closing.get(position, position) + 1
        if match[0] == separator:
            ends.append(position)
    return [*ends, end]


def _ranges_of_components(
    text: str, closing: dict[int, int], start: int, end: int
) -> list[tuple[int, int]]:
    """Start and end of each component of `text[start:end]`, the last one first."""
    ends = _ends_of_parts(text, closing, start, end, "/")
    starts = [start, *(position + 1 for position in ends[:-1])]
    return list(zip(starts, ends, strict=True))[::-1]


def _end_of_first_member(text: str, closing: dict[int, int], start: int, end: int) -> int | None:
    """The end of `x` in a component `(x:y)`; None for another component."""
    if text[start : start + 1] != "(" or closing.get(start) != end - 1:
        return None
    members = _ends_of_parts(text, closing, start + 1, end - 1, ":")
    return members[0] if len(members) > 1 else None
