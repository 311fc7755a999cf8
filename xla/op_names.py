"""The path in an op_name: transformations, control flow, scopes and the primitive.

JAX builds an op_name from its name stack: a component for each traced function, each
transformation of one, each `jax.named_scope` and each piece of control flow, and the primitive
at the end. A component is wrapped in the transformations that it went through:
`transpose(jvp(mlp))`. XLA joins the op_names of instructions that it merges.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

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
_TRANSFORMED = re.compile(rf"(?:(?:{'|'.join(_TRANSFORMATIONS)})\()+")


@dataclass(frozen=True, slots=True)
class Component:
    """One component of an op_name.

    Attributes:
        name: the component without its transformations.
        transformations: the names of the transformations around it.
        is_dropped: whether it names no work: control flow, a wrapper or an empty name.
        is_program: whether it is a program, such as `jit(train_step)`.
    """

    name: str
    transformations: frozenset[str]
    is_dropped: bool
    is_program: bool


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
    components, is_joined = split(text)
    parts = [read_component(component) for component in components]
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
    name = _without_parameters(text)
    match = _TRANSFORMED.match(name)
    opening = match[0] if match else ""
    transformations = opening.split("(")[:-1]
    closing = ")" * len(transformations)
    if not name.endswith(closing):
        transformations = []
    elif transformations:
        name = _without_parameters(name[len(opening) : -len(closing)])
    if text == GRADIENT_TAPE or _TORCH_BACKWARD.fullmatch(text):
        transformations = ["transpose"]
    is_dropped = name in _DROPPED or bool(_BRANCH.fullmatch(name) or _PMAP.fullmatch(name))
    return Component(name, frozenset(transformations), is_dropped, bool(_PROGRAM.fullmatch(text)))


def _without_parameters(component: str) -> str:
    """A component without the `[…]` at its end."""
    name, _, _ = component.partition("[")
    return name if name and component.endswith("]") else component


def split(text: str) -> tuple[list[str], bool]:
    """Split an op_name at each `/` outside of brackets.

    Returns the components, and whether XLA joined the op_name from several. Of `a/b;c/d` the
    result is that of `a/b`; of `prefix/(x:y)`, which XLA writes for combined collectives, that of
    `prefix/x`.
    """
    first, *others = _split_outside_brackets(text, ";") if ";" in text else [text]
    is_joined = bool(others)
    components: list[str] = []
    for part in _split_outside_brackets(first, "/"):
        is_group = part.startswith("(") and part.endswith(")")
        members = _split_outside_brackets(part[1:-1], ":") if is_group else []
        if len(members) > 1:
            is_joined = True
            components += _split_outside_brackets(members[0], "/")
        else:
            components.append(part)
    return components, is_joined


def _split_outside_brackets(text: str, separator: str) -> list[str]:
    """The parts of a text between separators; those in brackets count only if one is not closed."""
    pieces = text.split(separator)
    depths = list(accumulate(map(_opening_brackets, pieces)))
    if depths[-1] != 0 or not any(depths):
        return pieces
    parts: list[list[str]] = []
    for piece, outer_depth in zip(pieces, [0, *depths], strict=False):
        if outer_depth > 0:
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return [separator.join(part) for part in parts]


@lru_cache(maxsize=4096)
def _opening_brackets(text: str) -> int:
    """Number of opening brackets minus number of closing ones."""
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))
