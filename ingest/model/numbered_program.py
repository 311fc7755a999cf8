"""A module's HLO text as numbers: instructions are rows, and names are gone.

Dataflow, liveness and sharing compute with these columns only. An instruction is its row in
the text's order; a computation is its place in the text.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DumpError
from .aliases import Alias, parse_aliases
from .parts import HloText
from .runs import followed

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NONE = -1  # stands for "no instruction", "no computation", "no number"


@dataclass(frozen=True)
class Codes:
    """A column of few distinct texts: a code for each row (NONE for null), and each code's text."""

    codes: Ints
    texts: list[str]

    def is_one_of(self, *texts: str) -> Mask:
        """Which rows hold one of these texts."""
        chosen = np.array([text in texts for text in self.texts] + [False], bool)
        found: Mask = chosen[self.codes]
        return found

    def at(self, row: int) -> str:
        """The text of one row; empty for null."""
        code = int(self.codes[row])
        return self.texts[code] if code != NONE else ""


@dataclass(frozen=True)
class NumberedProgram:
    """A module's instructions, operands and calls, by row.

    `computation` is each instruction's computation; `first` and `stop` bound a computation's
    rows, and `root` is the row of its root. The operands of row i are
    `operands[operand_start[i]:operand_start[i + 1]]`. A call is (call_row, call_attribute,
    call_computation); the calls of one instruction by one attribute are in the text's order.
    """

    names: pa.LargeStringArray
    lines: Ints
    opcode: Codes
    shape: Codes
    computation: Ints
    computation_names: list[str]
    entry: int
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
    slice_start: Ints
    fusion_kind: Codes
    operand_aliasing: Codes
    custom_call_target: Codes
    input_output_alias: list[Alias]

    def __len__(self) -> int:
        return len(self.computation)

    @cached_property
    def operand_count(self) -> Ints:
        """How many operands each instruction has."""
        return np.diff(self.operand_start)

    @cached_property
    def operand_row(self) -> Ints:
        """The instruction that each of `operands` is an operand of."""
        return np.repeat(np.arange(len(self)), self.operand_count)

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

    def called_root(self, rows: Ints) -> Ints:
        """The root of the computation that each of these calls or async-starts runs."""
        found: Ints = self.root[self.callee(rows, "to_apply", "calls")]
        return found

    @cached_property
    def async_start(self) -> Ints:
        """Of each async-update and async-done, the async-start that it continues; else NONE."""
        rows = self.rows("async-update", "async-done")
        pointer = np.arange(len(self))
        pointer[rows] = self.operand(rows, 0)
        found = followed(pointer)
        is_start = self.opcode.is_one_of("async-start")
        self.require(rows, is_start[found[rows]], "does not continue an async-start")
        found[found == np.arange(len(self))] = NONE
        return found

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


def number_program(hlo: HloText) -> NumberedProgram:
    """A module's text as rows of numbers.

    Raises DumpError if a name is not unique, an operand is not defined before its use, or
    a computation has no root.
    """
    attributes = hlo.attributes().instructions
    lines = _combined(attributes["line"]).to_numpy()
    names = _combined(hlo.instructions["instruction"])
    operand_start, operands = _operands(hlo, names, lines)
    computation_names = hlo.computations["computation"].to_pylist()
    computations = pa.array(computation_names, pa.large_string())
    computation = _numbers(
        pc.index_in(hlo.instructions["computation"], value_set=computations), "computation"
    )
    first = np.searchsorted(computation, np.arange(len(computation_names)))
    stop = np.searchsorted(computation, np.arange(len(computation_names)), side="right")
    if (first == stop).any():
        raise DumpError(f"computation {computation_names[np.argmax(first == stop)]} is empty")
    call_row = _numbers(pc.index_in(hlo.calls["instruction"], value_set=names), "caller")
    alias = hlo.header["input_output_alias"]
    program = NumberedProgram(
        names=names,
        lines=lines,
        opcode=_codes(hlo.instructions["opcode"]),
        shape=_codes(hlo.instructions["shape"]),
        computation=computation,
        computation_names=computation_names,
        entry=int(np.argmax(_mask(hlo.computations["is_entry"]))),
        first=first,
        stop=stop,
        root=_roots(computation, _mask(attributes["is_root"]), stop - 1),
        operand_start=operand_start,
        operands=operands,
        call_row=call_row,
        call_attribute=_codes(hlo.calls["attribute"]),
        call_computation=_numbers(
            pc.index_in(hlo.calls["computation"], value_set=computations), "computation"
        ),
        parameter_number=_numbers_or_none(attributes["parameter_number"]),
        tuple_index=_numbers_or_none(attributes["tuple_index"]),
        slice_start=_numbers_or_none(attributes["slice_start"]),
        fusion_kind=_codes(attributes["fusion_kind"]),
        operand_aliasing=_codes(attributes["output_to_operand_aliasing"]),
        custom_call_target=_codes(hlo.instructions["custom_call_target"]),
        input_output_alias=parse_aliases(str(alias)) if alias else [],
    )
    _check_order(program)
    return program


def _operands(hlo: HloText, names: pa.LargeStringArray, lines: Ints) -> tuple[Ints, Ints]:
    """Where each instruction's operands start, and each operand's row. Raises DumpError."""
    number = _combined(hlo.operands["operand_number"]).to_numpy()
    heads = np.flatnonzero(number == 0)
    chunks = [
        names,
        _combined(hlo.operands["operand"]),
        _combined(hlo.operands["instruction"]).take(pa.array(heads)),
    ]
    # Names and operands at once: each text is hashed once.
    encoded = pa.concat_arrays(chunks).dictionary_encode()
    code = encoded.indices.to_numpy().astype(np.int64)
    count = len(names)
    doubled = np.flatnonzero(code[:count] != np.arange(count))
    if len(doubled):
        row = int(doubled[0])
        raise DumpError(f"two instructions are called {names[row]}", int(lines[row]))
    operands, head_rows = code[count : count + len(number)], code[count + len(number) :]
    if (operands >= count).any():
        name = encoded.dictionary[int(operands.max())]
        raise DumpError(f"operand {name} is not defined in the text")
    counts = np.zeros(count, np.int64)
    counts[head_rows] = np.diff(np.append(heads, len(number)))
    return np.concatenate([[0], np.cumsum(counts)]), operands


def _roots(computation: Ints, is_root: Mask, last: Ints) -> Ints:
    """Each computation's root: the instruction marked so, else the last one."""
    root = last.copy()
    rows = np.flatnonzero(is_root)
    root[computation[rows]] = rows
    return root


def _check_order(program: NumberedProgram) -> None:
    """Raise DumpError unless each operand stands before its instruction, in its computation."""
    owner, operands = program.operand_row, program.operands
    before = operands < owner
    before &= program.computation[operands] == program.computation[owner]
    program.require(owner, before, "has an operand that is not defined before it")


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mask(column: pa.ChunkedArray) -> Mask:
    found: Mask = _combined(column).to_numpy(zero_copy_only=False)
    return found


def _codes(column: pa.ChunkedArray) -> Codes:
    array = _combined(column)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    codes = pc.fill_null(encoded.indices, NONE).to_numpy().astype(np.int64)
    return Codes(codes, encoded.dictionary.to_pylist())


def _numbers(column: pa.Array, what: str) -> Ints:
    if column.null_count:
        raise DumpError(f"a {what} is not in the text")
    numbers: Ints = _combined(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _numbers_or_none(column: pa.Array) -> Ints:
    numbers: Ints = pc.fill_null(_combined(column), NONE).to_numpy().astype(np.int64)
    return numbers
