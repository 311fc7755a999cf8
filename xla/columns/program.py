"""A program as numbers: instructions are rows, names are gone, and sub-shapes have slots."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..aliases import parse_aliases
from ..errors import DumpError
from ..program import NONE, NOT_READ, Alias, Unread
from ..shapes import ArrayShape, Shape, TupleShape, parse_shape
from .runs import joined, starts_of

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A module's HLO text as numbers: instructions are rows, and names are gone.
#
# Dataflow, liveness and sharing compute with these columns only. An instruction is its row in
# the text's order; a computation is its place in the text.

_FEW_CODES = 4

_VALUE = r"\{(?:[^{}]|\{[^{}]*\})*\}|[^ ,{}]+"
_ATTRIBUTE = re.compile(rf"(?:^|, )([a-z_]+)=({_VALUE})")


@dataclass(frozen=True)
class Codes:
    """A column of few distinct texts: a code for each row (NONE for null), and each code's text."""

    codes: Ints
    texts: list[str]

    def is_one_of(self, *texts: str) -> Mask:
        """Which rows hold one of these texts."""
        chosen = [code for code, text in enumerate(self.texts) if text in texts]
        if len(chosen) > _FEW_CODES:
            is_chosen = np.zeros(len(self.texts) + 1, bool)
            is_chosen[chosen] = True
            looked_up: Mask = is_chosen[self.codes]
            return looked_up
        # Comparing all rows with a code is quicker than looking up each row.
        found = self.small == chosen[0] if chosen else np.zeros(len(self.codes), bool)
        for code in chosen[1:]:
            found |= self.small == code
        return found

    @cached_property
    def small(self) -> npt.NDArray[np.int16] | Ints:
        """The codes in as few bytes as they fit into."""
        return self.codes.astype(np.int16) if len(self.texts) < 2**15 else self.codes

    def at(self, row: int) -> str:
        """The text of one row; empty for null."""
        code = int(self.codes[row])
        return self.texts[code] if code != NONE else ""


@dataclass(frozen=True)
class NumberedProgram:
    """A module's instructions, operands and calls, by row.

    `unread` says what the text does not say: an instruction with an operand that is not defined
    has the opcode NOT_READ and lacks that operand. It is None if the text says all.

    `computation` is each instruction's computation; `first` and `stop` bound a computation's
    rows, and `root` is the row of its root. The operands of row i are
    `operands[operand_start[i]:operand_start[i + 1]]`. A call is (call_row, call_attribute,
    call_computation); the calls of one instruction by one attribute are in the text's order.
    `control` has a row for each control dependency: an instruction, and one that runs before it.

    Rows may be those of several programs, one after the other (`union.joined_parts`): `entries`
    has the entry computation of each, `program_of_computation` the program's number, and
    `alias_entry` the entry that each of `input_output_alias` is of.
    """

    names: pa.LargeStringArray
    lines: Ints
    opcode: Codes
    shape: Codes
    computation: Ints
    computation_names: list[str]
    entries: Ints
    program_of_computation: Ints
    first: Ints
    stop: Ints
    root: Ints
    operand_start: Ints
    operands: Ints
    call_row: Ints
    call_attribute: Codes
    call_computation: Ints
    parameter_number: Ints
    tuple_index: Ints
    fusion_kind: Codes
    attributes: Codes
    custom_call_target: Codes
    input_output_alias: list[Alias]
    alias_entry: Ints
    control: Ints
    unread: Unread | None = None

    def __len__(self) -> int:
        return len(self.computation)

    @property
    def entry(self) -> int:
        """The entry computation of the one program."""
        (entry,) = self.entries.tolist()
        return int(entry)

    @cached_property
    def operand_count(self) -> Ints:
        """How many operands each instruction has."""
        return np.diff(self.operand_start)

    @cached_property
    def operand_row(self) -> Ints:
        """The instruction that each of `operands` is an operand of."""
        return np.repeat(np.arange(len(self)), self.operand_count)

    def attribute(self, name: str) -> Codes:
        """The values of one of the `attributes`, such as `{1}`; null where there is none."""
        found = [texts.get(name) for texts in map(attribute_values, self.attributes.texts)]
        texts = sorted({text for text in found if text is not None})
        number = {text: code for code, text in enumerate(texts)}
        codes = [NONE if text is None else number[text] for text in found]
        return Codes(np.array([*codes, NONE], np.int64)[self.attributes.codes], texts)

    @cached_property
    def operand_aliasing(self) -> Codes:
        """What `output_to_operand_aliasing` says."""
        found = self.attribute("output_to_operand_aliasing")
        return Codes(found.codes, [text[1:-1] for text in found.texts])

    def rows(self, *opcodes: str) -> Ints:
        """The instructions with one of these opcodes."""
        return np.flatnonzero(self.opcode.is_one_of(*opcodes))

    def operand(self, rows: Ints, number: Ints | int) -> Ints:
        """One operand of each of these instructions. Raises DumpError where there is none."""
        self.require(rows, self.operand_count[rows] > number, "lacks an operand")
        found: Ints = self.operands[self.operand_start[rows] + number]
        return found

    def callee(self, rows: Ints, *attributes: str) -> Ints:
        """The computation that each of these instructions calls by one of these attributes.

        Raises DumpError where an instruction names none.
        """
        found = np.full(len(self), NONE)
        named = self.call_attribute.is_one_of(*attributes)
        found[self.call_row[named]] = self.call_computation[named]
        self.require(rows, found[rows] != NONE, f"names no computation ({' or '.join(attributes)})")
        result: Ints = found[rows]
        return result

    @cached_property
    def parameter_start(self) -> Ints:
        """Where each computation's parameters start in `parameters`."""
        rows = np.flatnonzero(self.parameter_number != NONE)
        count = np.bincount(self.computation[rows], minlength=len(self.first))
        return np.concatenate([[0], np.cumsum(count)])

    @cached_property
    def parameters(self) -> Ints:
        """The parameters' rows, by computation and number. Raises DumpError unless 0, 1, 2, …"""
        rows = np.flatnonzero(self.parameter_number != NONE)
        rows = rows[np.lexsort((self.parameter_number[rows], self.computation[rows]))]
        place = np.arange(len(rows)) - self.parameter_start[self.computation[rows]]
        self.require(
            rows, self.parameter_number[rows] == place, "does not follow the parameter before it"
        )
        return rows

    def parameter_of(self, computations: Ints, number: Ints | int, callers: Ints) -> Ints:
        """The row of a computation's parameter. Raises DumpError at the caller if it has none."""
        at = self.parameter_start[computations] + number
        have = at < self.parameter_start[computations + 1]
        self.require(callers, have, "passes an operand that its computation has no parameter for")
        found: Ints = self.parameters[at]
        return found

    def require(self, rows: Ints, right: Mask, complaint: str) -> None:
        """Raise DumpError at the first of these instructions that is not right."""
        if not right.all():
            self.refuse(int(rows[np.argmin(right)]), complaint)

    def refuse(self, row: int, complaint: str) -> NoReturn:
        """Raise DumpError about one instruction."""
        raise DumpError(f"{self.opcode.at(row)} {self.names[row]} {complaint}", self.line(row))

    def line(self, row: int) -> int:
        """The line of the file that holds an instruction."""
        return int(self.lines[row])


def program_of(
    instructions: pa.Table,
    lines: Ints,
    computations: pa.Table,
    operand_owners: Ints,
    operands: Ints,
    calls: pa.Table,
    call_row: Ints,
    alias: Sequence[object],
    controlled: Ints,
    predecessors: Ints,
    counts: Sequence[tuple[int, int]],
) -> NumberedProgram:
    """Programs from their tables, in the texts' order, and the rows of what they name.

    instructions, computations, calls: as in HloText; lines: each instruction's line;
    operand_owners, operands: the rows of instructions and of their operands, by instruction, where
    no instruction has the row of an operand that is not defined; call_row: the row of each call's
    instruction; alias: `input_output_alias` of each header; controlled, predecessors: instructions,
    and others that run before them, though they are not read; counts: how many instructions and
    computations each program has. Raises DumpError if a computation is empty or not there.
    """
    if (call_row >= len(lines)).any():
        raise DumpError("a caller is not in the text")
    numbers = np.arange(len(counts))
    of_row, of_computation = (np.repeat(numbers, each) for each in zip(*counts, strict=True))
    names_of_computations = combined(computations["computation"]).cast(pa.large_string())
    distinct = pc.unique(names_of_computations)

    def keys(column: pa.ChunkedArray | pa.Array, program: Ints) -> Ints:
        codes = pc.index_in(column.cast(pa.large_string()), value_set=distinct)
        found: Ints = program * len(distinct) + _numbers(codes, "computation")
        return found

    place = np.full(len(counts) * len(distinct), NONE)
    own = keys(names_of_computations, of_computation)
    place[own[::-1]] = np.arange(len(own))[::-1]

    def places(column: pa.ChunkedArray, program: Ints) -> Ints:
        found: Ints = place[keys(column, program)]
        if (found == NONE).any():
            raise DumpError("a computation is not in the text")
        return found

    computation = places(instructions["computation"], of_row)
    computation_names = names_of_computations.to_pylist()
    first = np.searchsorted(computation, np.arange(len(computation_names)))
    stop = np.searchsorted(computation, np.arange(len(computation_names)), side="right")
    if (first == stop).any():
        raise DumpError(f"computation {computation_names[np.argmax(first == stop)]} is empty")
    names, opcode = combined(instructions["instruction"]), _codes(instructions["opcode"])
    entries = np.searchsorted(of_computation, numbers)
    marked = np.flatnonzero(_mask(computations["is_entry"]))[::-1]
    entries[of_computation[marked]] = marked
    aliases = [parse_aliases(str(each)) if each else [] for each in alias]
    # An operand stands before its instruction, in its computation.
    is_defined = operands < operand_owners
    is_defined &= computation[np.minimum(operands, operand_owners)] == computation[operand_owners]
    unread = None
    if not is_defined.all():
        opcode, unread = _undefined(operand_owners, is_defined, opcode, names, lines)
        operand_owners, operands = operand_owners[is_defined], operands[is_defined]
    return NumberedProgram(
        names=names,
        lines=lines,
        opcode=opcode,
        shape=_codes(instructions["shape"]),
        computation=computation,
        computation_names=computation_names,
        entries=entries,
        program_of_computation=of_computation,
        first=first,
        stop=stop,
        root=_roots(computation, _mask(instructions["is_root"]), stop - 1),
        operand_start=starts_of(np.bincount(operand_owners, minlength=len(lines))),
        operands=operands,
        call_row=call_row,
        call_attribute=_codes(calls["attribute"]),
        call_computation=places(calls["computation"], of_row[call_row]),
        parameter_number=_numbers_or_none(instructions["parameter_number"]),
        tuple_index=_numbers_or_none(instructions["tuple_index"]),
        fusion_kind=_codes(instructions["fusion_kind"]),
        attributes=_codes(instructions["attributes"]),
        custom_call_target=_codes(instructions["custom_call_target"]),
        input_output_alias=[pair for each in aliases for pair in each],
        alias_entry=np.repeat(entries, [len(each) for each in aliases]),
        control=np.unique(np.stack([controlled, predecessors], 1).astype(np.int64), axis=0),
        unread=unread,
    )


def program_of_rows(
    instructions: pa.Table,
    entry: str,
    operands: pa.Table,
    calls: pa.Table,
    control: pa.Table,
    alias: object,
) -> NumberedProgram:
    """A program from its rows in the warehouse, in the order of their keys.

    instructions: those of the HLO text; entry: the entry computation; alias: as in `program_of`.
    Raises DumpError if they make no program.
    """
    # Computations stand in the text's order, and so do the instructions.
    computations = pa.table({"computation": pc.unique(instructions["computation"])})
    return program_of(
        instructions,
        np.arange(1, len(instructions) + 1),
        computations.append_column("is_entry", pc.equal(computations["computation"], entry)),
        operands["instruction_id"].to_numpy(),
        operands["operand_instruction_id"].to_numpy().astype(np.int64),
        calls,
        calls["instruction_id"].to_numpy().astype(np.int64),
        [alias],
        control["instruction_id"].to_numpy(),
        control["predecessor_instruction_id"].to_numpy(),
        [(len(instructions), len(computations))],
    )


def _undefined(
    owners: Ints, is_defined: Mask, opcode: Codes, names: pa.LargeStringArray, lines: Ints
) -> tuple[Codes, Unread]:
    """The opcodes, where instructions with undefined operands have none that is known, and why."""
    rows = np.unique(owners[~is_defined])
    row = int(rows[0])
    number = int(np.argmin(is_defined[owners == row]))
    codes = opcode.codes.copy()
    codes[rows] = len(opcode.texts)
    what = (
        f"{len(rows)} of {len(names)} instructions {'have' if len(rows) > 1 else 'has'} an operand "
        f"that is not defined before: operand {number} of {opcode.at(row)} {names[row]}"
    )
    return Codes(codes, [*opcode.texts, NOT_READ]), Unread(int(lines[row]), what)


def attribute_values(text: str) -> dict[str, str]:
    """The attributes in a text of the column `attributes`, by their names."""
    return dict(_ATTRIBUTE.findall(text))


def _roots(computation: Ints, is_root: Mask, last: Ints) -> Ints:
    """Each computation's root: the instruction marked so, else the last one."""
    root = last.copy()
    rows = np.flatnonzero(is_root)
    root[computation[rows]] = rows
    return root


def combined(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mask(column: pa.ChunkedArray) -> Mask:
    found: Mask = combined(column).to_numpy(zero_copy_only=False)
    return found


def _codes(column: pa.ChunkedArray) -> Codes:
    array = combined(column)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = pc.fill_null(encoded.indices, NONE).to_numpy().astype(np.int64)
    return Codes(codes, encoded.dictionary.to_pylist())


def _numbers(column: pa.Array, what: str) -> Ints:
    if column.null_count:
        raise DumpError(f"a {what} is not in the text")
    numbers: Ints = combined(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _numbers_or_none(column: pa.Array) -> Ints:
    numbers: Ints = pc.fill_null(combined(column), NONE).to_numpy().astype(np.int64)
    return numbers


@dataclass(frozen=True)
class ShapeTrees:
    """The sub-shapes of some shapes: those of shape s are `start[s]` up to `start[s + 1]`.

    Of each sub-shape (a *node*): `index`, a code in `index_texts` such as `{1,0}`; `size`, how
    many nodes it holds, itself counted; `is_leaf`, false of a tuple; `array`, a code in
    `arrays`, NONE of a tuple; `shapes`, the node as a shape. The elements of a tuple are
    `children[child_start[node]:child_start[node + 1]]`, as numbers within the shape.
    """

    start: Ints
    index: Ints
    index_texts: list[str]
    size: Ints
    is_leaf: Mask
    array: Ints
    arrays: list[ArrayShape]
    shapes: list[Shape]
    child_start: Ints
    children: Ints

    @property
    def counts(self) -> Ints:
        """How many nodes each shape has."""
        return np.diff(self.start)

    def child_count(self, nodes: Ints) -> Ints:
        """How many elements each node has; 0 of an array."""
        found: Ints = self.child_start[nodes + 1] - self.child_start[nodes]
        return found

    def child(self, nodes: Ints, number: Ints | int) -> Ints:
        """An element of each node, as its number within the shape."""
        found: Ints = self.children[self.child_start[nodes] + number]
        return found


class _Builder:
    """Collects the nodes of shape after shape."""

    def __init__(self) -> None:
        self.index: list[int] = []
        self.size: list[int] = []
        self.is_leaf: list[bool] = []
        self.array: list[int] = []
        self.children: list[list[int]] = []
        self.texts: dict[tuple[int, ...], int] = {}
        self.arrays: dict[ArrayShape, int] = {}
        self.shapes: list[Shape] = []

    def add(self, shape: Shape, index: tuple[int, ...], start: int) -> int:
        """Append a shape's nodes; returns how many."""
        node = len(self.index)
        self.shapes.append(shape)
        self.index.append(self.texts.setdefault(index, len(self.texts)))
        self.size.append(1)
        self.children.append([])
        self.is_leaf.append(isinstance(shape, ArrayShape))
        if isinstance(shape, TupleShape):
            self.array.append(-1)
            for number, element in enumerate(shape.elements):
                self.children[node].append(len(self.index) - start)
                self.size[node] += self.add(element, (*index, number), start)
        else:
            self.array.append(self.arrays.setdefault(shape, len(self.arrays)))
        return self.size[node]


def flatten_shapes(texts: Iterable[str]) -> ShapeTrees:
    """The sub-shapes of shapes, which are given as texts. Raises ValueError for a bad text.

    Programs repeat few shapes many times: give each distinct text once.
    """
    nodes = _Builder()
    start = [0]
    for text in texts:
        nodes.add(parse_shape(text), (), start[-1])
        start.append(len(nodes.index))
    counts = np.fromiter(map(len, nodes.children), np.int64, len(nodes.children))
    return ShapeTrees(
        start=np.array(start, np.int64),
        index=np.array(nodes.index, np.int64),
        index_texts=["{" + ",".join(map(str, index)) + "}" for index in nodes.texts],
        size=np.array(nodes.size, np.int64),
        is_leaf=np.array(nodes.is_leaf, bool),
        array=np.array(nodes.array, np.int64),
        arrays=list(nodes.arrays),
        shapes=nodes.shapes,
        child_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        children=np.array([child for row in nodes.children for child in row], np.int64),
    )


# Slots: a number for each sub-shape of each instruction that dataflow looks at.


@dataclass(frozen=True)
class Slots:
    """The (instruction, sub-shape) pairs: those of row i start at `start[i]`.

    `instruction` and `node` are those of each slot, `count` is how many slots an instruction
    has, 0 if it has none; `root` is the node of an instruction's whole shape.
    """

    trees: ShapeTrees
    start: Ints
    count: Ints
    root: Ints
    instruction: Ints
    node: Ints

    def __len__(self) -> int:
        return len(self.instruction)

    @cached_property
    def index(self) -> pa.DictionaryArray:
        """Each slot's shape index as text, such as `{1,0}`."""
        codes = self.trees.index[self.node].astype(np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes), pa.array(self.trees.index_texts, pa.large_string())
        )

    @cached_property
    def is_leaf(self) -> Mask:
        """Which slots are of an array, a token or an opaque value, and not of a tuple."""
        found: Mask = self.trees.is_leaf[self.node]
        return found

    @cached_property
    def size(self) -> Ints:
        """How many slots follow in the tuple of each slot, itself counted."""
        found: Ints = self.trees.size[self.node]
        return found

    @cached_property
    def array(self) -> Ints:
        """Each slot's code in `trees.arrays`; NONE of a tuple."""
        found: Ints = self.trees.array[self.node]
        return found

    def whole(self, rows: Ints) -> Ints:
        """The slot of the whole of each instruction."""
        return self.start[rows]

    def element_count(self, slots: Ints) -> Ints:
        """How many elements the tuple at each slot has; 0 of an array."""
        return self.trees.child_count(self.node[slots])

    def element(self, slots: Ints, number: Ints | int) -> Ints:
        """The slot of an element of the tuple at each slot; the element must exist."""
        within = self.trees.child(self.node[slots], number)
        rows = self.instruction[slots]
        found: Ints = self.start[rows] + within
        return found

    def named(self, rows: Ints, indices: pa.Array | pa.ChunkedArray) -> Ints:
        """The slot of each row's sub-shape with an index as text; NONE if it has no such."""
        texts = pa.array(self.trees.index_texts, pa.large_string())
        codes = pc.index_in(indices.cast(pa.large_string()), value_set=texts)
        numbers = pc.fill_null(codes, NONE).to_numpy()
        wanted, is_known = rows * len(texts) + numbers, numbers != NONE
        keys, order = self._keys
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(is_known & (keys[at] == wanted), order[at], NONE)

    @cached_property
    def _keys(self) -> tuple[Ints, Ints]:
        """The slots by their rows and indices."""
        keys = self.instruction * len(self.trees.index_texts) + self.trees.index[self.node]
        order = np.argsort(keys)
        return keys[order], order


def lay_slots(program: NumberedProgram, chosen: Mask) -> Slots:
    """Number the sub-shapes of the chosen instructions, in the text's order.

    Raises DumpError for a shape that cannot be read.
    """
    rows = np.flatnonzero(chosen)
    shapes = np.unique(program.shape.codes[rows])
    try:
        trees = flatten_shapes(program.shape.texts[shape] for shape in shapes)
    except ValueError as error:
        raise DumpError(str(error)) from None
    place = np.full(len(program.shape.texts), NONE)
    place[shapes] = np.arange(len(shapes))
    shape = place[program.shape.codes]
    count = np.where(chosen, trees.counts[shape], 0) if len(shapes) else np.zeros(len(program), int)
    start = starts_of(count)
    root = np.where(chosen, trees.start[shape], NONE)
    instruction = np.repeat(np.arange(len(program)), count)
    node = joined(root[rows], count[rows])
    return Slots(trees, start[:-1], count, root, instruction, node)


__all__ = [
    "NONE",
    "Codes",
    "Ints",
    "Mask",
    "NumberedProgram",
    "Slots",
    "attribute_values",
    "lay_slots",
    "program_of_rows",
]
