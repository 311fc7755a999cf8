"""A module's op_names: of what kind each is, and the scope and operation that it names.

All is decided once for each distinct op_name; the columns by instruction are codes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..numbered_program import NONE, Ints, Mask, NumberedProgram
from .paths import NO_PATH, Path, read_component, read_path

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
    """The op_names of a program.

    By instruction: `code`, its op_name's place in `texts` (NONE for null), and `kind`, a Kind.
    By distinct op_name: `text_kind`; `has_rematted`, `has_transpose` and `has_jvp`, whether a
    component is `rematted_computation` or went through the transformation; `is_relative`,
    whether it lacks the program at its start and continues its caller's; `loops`, how many
    loops lie around the differentiated code; `scope` and `operation`, what its own components
    name: both empty, and the flags False, where it names no path (ARGUMENT, XLA_MADE).
    `is_jax` says that some op_name starts with a program.
    """

    code: Ints
    texts: list[str]
    kind: Kinds
    text_kind: Kinds
    has_rematted: Mask
    has_transpose: Mask
    has_jvp: Mask
    is_relative: Mask
    loops: Ints
    scope: list[str]
    operation: list[str]
    is_jax: bool

    def by_row(self, mask: Mask) -> Mask:
        """A mask by distinct op_name as a mask by instruction; no op_name is False."""
        found: Mask = np.append(mask, False)[self.code]
        return found


def name_rows(program: NumberedProgram, op_name: pa.Array | pa.ChunkedArray) -> OpNames:
    """Sort the op_names of a program's instructions into kinds and read their paths.

    `op_name` is the column of the HLO text, a row for each instruction.
    """
    code, texts = _encoded(op_name)
    component = cache(read_component)
    paths = [read_path(text, component) for text in texts]
    arguments = set(code[_entry_parameters(program)].tolist())
    kinds = [_kind(path, number in arguments) for number, path in enumerate(paths)]
    is_jax = any(path.has_program for path in paths)
    if not is_jax:
        for number, text in enumerate(texts):
            # Others name operations without a path: `aten__mm`. XLA's own names are numbered.
            if kinds[number] == Kind.XLA_MADE and text and not _NUMBERED.search(text):
                paths[number], kinds[number] = Path((component(text),), False, False), Kind.STRONG
    text_kind = np.array(kinds, np.int8)
    paths = [
        path if kind >= Kind.JOINED else NO_PATH for path, kind in zip(paths, kinds, strict=True)
    ]

    def mask(values: Iterable[bool]) -> Mask:
        return np.fromiter(values, bool, len(texts))

    return OpNames(
        code=code,
        texts=texts,
        kind=np.append(text_kind, np.int8(Kind.NONE))[code],
        text_kind=text_kind,
        has_rematted=mask(path.has_component("rematted_computation") for path in paths),
        has_transpose=mask(path.has("transpose") for path in paths),
        has_jvp=mask(path.has("jvp") for path in paths),
        is_relative=mask(is_jax and not path.has_program and path is not NO_PATH for path in paths),
        loops=np.fromiter((path.loops for path in paths), np.int64, len(paths)),
        scope=[path.scope for path in paths],
        operation=[path.operation for path in paths],
        is_jax=is_jax,
    )


def callers(program: NumberedProgram) -> Ints:
    """The instruction that calls each computation, the first in the text; NONE of the entry.

    Fusions, reducers, loops, branches, calls and async computations alike. NONE also of what
    the entry does not reach, so that the callers of callers never lead in circles.
    """
    count = len(program.first)
    caller = np.full(count, NONE)
    caller[program.call_computation[::-1]] = program.call_row[::-1]
    caller[program.entry] = NONE
    parent = np.where(caller == NONE, np.arange(count), program.computation[caller])
    for _ in range(count.bit_length()):
        further = parent[parent]
        if np.array_equal(further, parent):
            break
        parent = further
    return np.where(parent == program.entry, caller, NONE)


def scopes(program: NumberedProgram, names: OpNames, caller: Ints) -> tuple[Ints, pa.Table]:
    """The scope and operation of each instruction: their number, and what they are.

    The number is NONE for an instruction whose op_name names no path. A relative op_name lies
    in the scope of its caller, or of that one's caller if the caller has no path either. The
    table has a row for each distinct pair: scope_id, scope, operation.
    """
    numbers: dict[tuple[str, str], int] = {}
    of_text = np.full(len(names.texts) + 1, NONE)
    for text in np.flatnonzero((names.text_kind >= Kind.JOINED) & ~names.is_relative).tolist():
        pair = (names.scope[text], names.operation[text])
        of_text[text] = numbers.setdefault(pair, len(numbers))
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
        chosen.append(numbers.setdefault((scope, names.operation[text]), len(numbers)))
    found[rows] = np.array(chosen, np.int64)[place]
    table = pa.table(
        {
            "scope_id": pa.array(range(len(numbers)), pa.int32()),
            "scope": pa.array([scope for scope, _ in numbers], pa.large_string()),
            "operation": pa.array([operation for _, operation in numbers], pa.large_string()),
        }
    )
    return found, table


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
    first, stop = program.first[program.entry], program.stop[program.entry]
    rows: Ints = np.flatnonzero(program.parameter_number[first:stop] != NONE) + first
    return rows


def _encoded(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Each row's code, NONE for null, and the codes' texts."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = pc.fill_null(encoded.indices, NONE).to_numpy().astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
