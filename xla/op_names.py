"""A module's op_names: of what kind each is, and the scope and operation that it names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import NONE, Ints, Mask, NumberedProgram
from .runs import starts_of

# Reads one op_name: the path of transformations, control flow and names that JAX writes.
#
# JAX builds an op_name from its name stack: a component for each traced function, each
# transformation of one, each `jax.named_scope` and each piece of control flow, and the primitive
# at the end. A component is wrapped in the transformations that it went through:
# `transpose(jvp(mlp))`. XLA joins the op_names of instructions that it merges.

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
# What other frameworks write for it: TensorFlow puts the gradient of `dense/MatMul` at
# `gradient_tape/dense/MatMul`, PyTorch/XLA calls that of `aten__relu` `aten__threshold_backward`.
_GRADIENT_TAPE = "gradient_tape"
_TORCH_BACKWARD = re.compile(r"aten__\w+_backward(?:_data)?(?:\.\d+)?")
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
    "eval_jaxpr",
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
# Functions of jax.numpy and the like, `jit(silu)`, and einsums, `bqhe,bkhe->bhqk`, are operations.
_OPERATION = re.compile(r"p?jit\(.*\)|.*->.*", re.DOTALL)
# A step that is one of several alike: `encoder_3`, `layers[3]`.
_NUMBERED_STEP = re.compile(r"(.*?\D)(\d+)(\D?)", re.DOTALL)

_DROPPED = frozenset((*CONTROL_FLOW, *WRAPPERS, _GRADIENT_TAPE, ""))
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
        is_backward = text == _GRADIENT_TAPE or _TORCH_BACKWARD.fullmatch(text)
        backward = frozenset(["transpose"] if is_backward else [])
        return Component(text, backward, _is_dropped(text), False, True)
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


# A module's op_names: of what kind each is, and the scope and operation that it names.
#
# All is decided once for each distinct op_name; the columns by instruction are codes.

Kinds = npt.NDArray[np.int8]

_NUMBERED = re.compile(r"\.\d+$")


class Kind(IntEnum):
    """What an op_name is worth as an owner, from nothing up to a name that owns.

    NONE: no op_name. ARGUMENT: that of an entry parameter. XLA_MADE: without a `/`, so that
    XLA made it up. JOINED: XLA joined it from several. WEAK: its last component is control
    flow or a wrapper. STRONG: all others.
    """

    NONE = 0
    ARGUMENT = 1
    XLA_MADE = 2
    JOINED = 3
    WEAK = 4
    STRONG = 5


@dataclass(frozen=True)
class OpNames:
    """The op_names of programs.

    By instruction: `code`, its op_name's place in `texts` (NONE for null), and `kind`, a Kind.
    By distinct op_name of a program: `program_of`, that program's number; `text_kind`;
    `has_rematted`, `has_transpose` and `has_jvp`, whether a
    component is `rematted_computation` or went through the transformation; `is_relative`,
    whether it lacks the program at its start and continues its caller's; `loops`, how many
    loops lie around the differentiated code; `scope` and `operation`, what its own components
    name: both empty, and the flags False, where it names no path (ARGUMENT, XLA_MADE).
    """

    code: Ints
    texts: list[str]
    program_of: Ints
    kind: Kinds
    text_kind: Kinds
    has_rematted: Mask
    has_transpose: Mask
    has_jvp: Mask
    is_relative: Mask
    loops: Ints
    scope: list[str]
    operation: list[str]

    def by_row(self, mask: Mask) -> Mask:
        """A mask by distinct op_name as a mask by instruction; no op_name is False."""
        found: Mask = np.append(mask, False)[self.code]
        return found


def name_rows(program: NumberedProgram, op_name: pa.Array | pa.ChunkedArray) -> OpNames:
    """Sort the op_names of instructions into kinds and read their paths.

    `op_name` is the column of the HLO text, a row for each instruction. A text that two programs
    have stands there twice, because it may mean something else in each.
    """
    code, distinct = _encoded(op_name)
    program_of, of_text = np.zeros(len(distinct), np.int64), np.arange(len(distinct))
    if len(program.entries) > 1:
        keys = np.where(code == NONE, NONE, program.program_of * len(distinct) + code)
        code, pairs = _encoded(pa.array(keys, mask=code == NONE))
        program_of, of_text = np.divmod(np.array(pairs, np.int64), len(distinct))
    texts = [distinct[each] for each in of_text.tolist()]
    component = cache(read_component)
    read = [read_path(text, component) for text in distinct]
    paths = [read[each] for each in of_text.tolist()]
    arguments = set(code[_entry_parameters(program)].tolist())
    kinds = [_kind(path, number in arguments) for number, path in enumerate(paths)]
    is_jax = np.zeros(len(program.entries), bool)
    is_jax[program_of[np.fromiter((path.has_program for path in paths), bool, len(paths))]] = True
    for number in np.flatnonzero(~is_jax[program_of]).tolist():
        # Others name operations without a path: `aten__mm`. XLA's own names are numbered.
        text = texts[number]
        if kinds[number] == Kind.XLA_MADE and text and not _NUMBERED.search(text):
            paths[number], kinds[number] = Path((component(text),), False, False), Kind.STRONG
    text_kind = np.array(kinds, np.int8)
    paths = [
        path if kind >= Kind.JOINED else NO_PATH for path, kind in zip(paths, kinds, strict=True)
    ]

    # TensorFlow names forward work alone by its layer, whose gradient is under `gradient_tape`.
    taped = [
        (number, path.components[:2])
        for number, path in zip(program_of.tolist(), paths, strict=True)
        if path.has_component(_GRADIENT_TAPE)
    ]
    layers = {
        (number, layer.name)
        for number, (tape, *rest) in taped
        if tape.name == _GRADIENT_TAPE
        for layer in rest
    }

    def mask(values: Iterable[bool]) -> Mask:
        return np.fromiter(values, bool, len(texts))

    return OpNames(
        code=code,
        texts=texts,
        program_of=program_of,
        kind=np.append(text_kind, np.int8(Kind.NONE))[code],
        text_kind=text_kind,
        has_rematted=mask(path.has_component("rematted_computation") for path in paths),
        has_transpose=mask(path.has("transpose") for path in paths),
        has_jvp=mask(
            path.has("jvp") or any((number, part.name) in layers for part in path.components[:1])
            for number, path in zip(program_of.tolist(), paths, strict=True)
        ),
        is_relative=is_jax[program_of]
        & mask(not path.has_program and path is not NO_PATH for path in paths),
        loops=np.fromiter((path.loops for path in paths), np.int64, len(paths)),
        scope=[path.scope for path in paths],
        operation=[path.operation for path in paths],
    )


def callers(program: NumberedProgram) -> Ints:
    """The instruction that calls each computation, the first in the text; NONE of the entry.

    Fusions, reducers, loops, branches, calls and async computations alike. NONE also of what
    the entry does not reach, so that the callers of callers never lead in circles.
    """
    count = len(program.first)
    caller = np.full(count, NONE)
    caller[program.call_computation[::-1]] = program.call_row[::-1]
    caller[program.entries] = NONE
    parent = np.where(caller == NONE, np.arange(count), program.computation[caller])
    for _ in range(count.bit_length()):
        further = parent[parent]
        if np.array_equal(further, parent):
            break
        parent = further
    return np.where(np.isin(parent, program.entries), caller, NONE)


def scopes(program: NumberedProgram, names: OpNames, caller: Ints) -> tuple[Ints, pa.Table, Ints]:
    """The scope and operation of each instruction: their number, and what they are.

    The number is NONE for an instruction whose op_name names no path. A relative op_name lies
    in the scope of its caller, or of that one's caller if the caller has no path either. The
    table has a row for each distinct pair of a program: scope_id, scope, operation, module_path,
    fold. The last are where the rows of each program start, and their end.
    """
    numbers: list[dict[tuple[str, str], int]] = [{} for _ in program.entries]
    program_of: list[int] = names.program_of.tolist()

    def number(scope: str, text: int) -> int:
        of_program = numbers[program_of[text]]
        return of_program.setdefault((scope, names.operation[text]), len(of_program))

    of_text = np.full(len(names.texts) + 1, NONE)
    for text in np.flatnonzero((names.text_kind >= Kind.JOINED) & ~names.is_relative).tolist():
        of_text[text] = number(names.scope[text], text)
    found = of_text[names.code]
    rows = np.flatnonzero(names.by_row(names.is_relative))
    computation, text_code = program.computation[rows], names.code[rows]
    width = len(names.texts)
    distinct, place = np.unique(computation * width + text_code, return_inverse=True)
    around: dict[int, str] = {}
    chosen = []
    for key in distinct.tolist():
        within, text = divmod(key, width)
        scope = _within(_scope_around(program, names, caller, within, around), names, text)
        chosen.append(number(scope, text))
    found[rows] = np.array(chosen, np.int64)[place]
    starts = starts_of(np.array([len(each) for each in numbers]))
    modules = [[module_path(scope) for scope, _ in each] for each in numbers]
    pairs = [pair for each in numbers for pair in each]
    table = pa.table(
        {
            "scope_id": pa.array(range(len(pairs)), pa.int32()),
            "scope": pa.array([scope for scope, _ in pairs], pa.large_string()),
            "operation": pa.array([operation for _, operation in pairs], pa.large_string()),
            "module_path": pa.array([path for each in modules for path in each], pa.large_string()),
            "fold": pa.array([fold for each in modules for fold in folds(each)], pa.large_string()),
        }
    )
    return np.where(found == NONE, NONE, found + starts[program.program_of]), table, starts


def module_path(scope: str) -> str:
    """The modules of a scope, without operations; of operations alone the scope itself.

    >>> module_path("Net/block_3/jit(silu)"), module_path("bqhe,bkhe->bhqk")
    ('Net/block_3', 'bqhe,bkhe->bhqk')
    """
    modules = [step for step in scope.split("/") if not _OPERATION.fullmatch(step)]
    return "/".join(modules) or scope


def folds(paths: Sequence[str]) -> list[str]:
    """The path that each module path shares with repeated layers: `{}` stands for the number.

    The outermost step that occurs with several numbers is the layer. A step within it bears the
    layer's number if it never has another. Without a repeated layer the fold is the path itself.

    >>> folds(["net/block_0/mlp", "net/block_1/mlp", "net/block_1/drop_1", "net/head_0"])
    ['net/block_{}/mlp', 'net/block_{}/mlp', 'net/block_{}/drop_{}', 'net/head_0']
    >>> folds(["net/block_0/norm_0", "net/block_1/norm_0"])
    ['net/block_{}/norm_0', 'net/block_{}/norm_0']
    """
    numbers: dict[tuple[str, str, str], set[str]] = {}
    distinct = {path: path.split("/") for path in paths}
    for steps in distinct.values():
        for depth, step in enumerate(steps):
            if match := _NUMBERED_STEP.fullmatch(step):
                around = "/".join(steps[:depth])
                numbers.setdefault((around, match[1], match[3]), set()).add(match[2])
    layered = {path: _numbered_steps(steps, numbers) for path, steps in distinct.items()}
    apart = {
        step.place
        for within in layered.values()
        for step in within
        if step.number != within[0].number
    }
    return [_fold(distinct[path], layered[path], apart) for path in paths]


class _Numbered(NamedTuple):
    """A numbered step of a layer: its depth in the path, its number, and where it is: the steps
    before the layer, then those from the layer on without their numbers.
    """

    depth: int
    number: str
    place: tuple[str, ...]


def _numbered_steps(
    steps: Sequence[str], numbers: Mapping[tuple[str, str, str], set[str]]
) -> list[_Numbered]:
    """The numbered steps of a path from its layer on, the layer first; none without a layer."""
    found: list[_Numbered] = []
    place: tuple[str, ...] = ()
    for depth, step in enumerate(steps):
        match = _NUMBERED_STEP.fullmatch(step)
        around = "/".join(steps[:depth])
        if match and (found or len(numbers[around, match[1], match[3]]) > 1):
            place = (*(place or (around,)), f"{match[1]}{{}}{match[3]}")
            found.append(_Numbered(depth, match[2], place))
        elif found:
            place = (*place, step)
    return found


def _fold(steps: list[str], within: list[_Numbered], apart: set[tuple[str, ...]]) -> str:
    folded = list(steps)
    for step in within:
        if step.number == within[0].number and step.place not in apart:
            folded[step.depth] = step.place[-1]
    return "/".join(folded)


def _scope_around(
    program: NumberedProgram, names: OpNames, caller: Ints, computation: int, known: dict[int, str]
) -> str:
    """The scope that a computation's relative op_names lie in. Fills `known` by computation."""
    inside = []
    while computation not in known:
        row = int(caller[computation])
        text = int(names.code[row]) if row != NONE else NONE
        named = text != NONE and names.text_kind[text] >= Kind.JOINED
        if row == NONE:
            known[computation] = ""
        elif named and not names.is_relative[text]:
            known[computation] = names.scope[text]
        else:
            inside.append((computation, text if named else NONE))
            computation = int(program.computation[row])
    scope = known[computation]
    for within, text in reversed(inside):
        scope = _within(scope, names, text) if text != NONE else scope
        known[within] = scope
    return scope


def _within(scope: str, names: OpNames, text: int) -> str:
    """The scope of a relative op_name that lies in another."""
    return "/".join(part for part in (scope, names.scope[text]) if part)


def _kind(path: Path, is_argument: bool) -> Kind:
    # XLA can turn what moves a parameter into the parameter: its op_name is then no argument's.
    if is_argument and not path.has_program:
        return Kind.ARGUMENT
    if len(path.components) + path.has_program < 2:
        return Kind.XLA_MADE
    if path.is_joined:
        return Kind.JOINED
    return Kind.WEAK if path.is_weak else Kind.STRONG


def _entry_parameters(program: NumberedProgram) -> Ints:
    return np.flatnonzero(program.is_entry & (program.parameter_number != NONE))


def _encoded(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Each row's code, NONE for null, and the codes' values."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = pc.fill_null(encoded.indices, NONE).to_numpy().astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
