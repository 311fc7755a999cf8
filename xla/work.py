"""How much a program computes: the FLOPs of its dots and convolutions, and how often each runs.

A multiplication and an addition are two FLOPs. Of a convolution only the positions count at which
the window meets an element, and no padding or hole of a dilation: a TPU's compiler writes dots
with batch dimensions as such convolutions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isqrt, prod

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .columns.program import NONE, Ints, NumberedProgram, attribute_values
from .shapes import ArrayShape, TupleShape, parse_shape

# What passes a value on.
_PASSING = ("copy", "bitcast", "convert", "copy-done", "optimization-barrier")
# Loops within loops within fusions: no program is deeper.
_DEEPEST = 64
_LIBRARY_DOTS = ("__cublas$", "__onednn$matmul", "__triton_gemm")
_PAIR = re.compile(r"(-?\d+)_(-?\d+)")
# Which of a cuDNN convolution's two operands and its result are the input, the kernel, the output.
_CUDNN = {
    "__cudnn$convForward": (1, 2, 0),
    "__cudnn$convBiasActivationForward": (1, 2, 0),
    "__cudnn$convBackwardInput": (0, 2, 1),
    "__cudnn$convBackwardFilter": (1, 0, 2),
}


@dataclass(frozen=True)
class Work:
    """The work of a program.

    flops: of each instruction, once; NONE if it is no dot and no convolution; trip_count: of each
    call by a loop, NONE if it is no loop's or not known; executions: how often each computation
    runs. By program: unknown_loops, the loops that run whose trip count is not known, and is taken
    for 1; total_flops.
    """

    flops: Ints
    trip_count: Ints
    executions: Ints
    unknown_loops: list[int]
    total_flops: list[int]


def work_of(program: NumberedProgram, loop_facts: pa.Table) -> Work:
    """The work of programs; `loop_facts` is as in HloAttributes."""
    flops = _flops(program)
    trip_count, is_loop = _trip_counts(program, loop_facts)
    times = np.where(trip_count == NONE, 1, trip_count).astype(float)
    executions: npt.NDArray[np.float64] = np.zeros(len(program.computation_names))
    for _ in range(_DEEPEST):
        weights = executions[program.computation[program.call_row]] * times
        after = np.bincount(program.call_computation, weights, len(executions)).astype(float)
        after[program.entries] += 1
        if np.array_equal(after, executions):
            break
        executions = after
    runs = executions[program.computation]
    unknown = is_loop & (trip_count == NONE) & (runs[program.call_row] > 0)
    loops = np.unique(program.call_row[unknown])
    has = np.flatnonzero(flops != NONE)
    total = flops[has] * runs[has]
    bounds = np.searchsorted(program.program_of[has], np.arange(len(program.entries) + 1)).tolist()
    return Work(
        flops,
        trip_count,
        executions.astype(np.int64),
        np.bincount(program.program_of[loops], minlength=len(program.entries)).tolist(),
        [int(total[start:stop].sum()) for start, stop in pairwise(bounds)],
    )


# The FLOPs of one instruction: worked out for each distinct combination of shapes.

_Dimensions = tuple[int, ...]


def _flops(program: NumberedProgram) -> Ints:
    found = np.full(len(program), NONE)
    for opcode, rule in (("dot", _of_dot), ("convolution", _of_convolution)):
        _fill(found, program, program.rows(opcode), rule)
    target = program.custom_call_target
    for at, name in enumerate(target.texts):
        rows = np.flatnonzero(target.codes == at)
        if name.startswith(_LIBRARY_DOTS):
            _fill(found, program, rows, _of_library_dot)
        elif name in _CUDNN:
            _fill(found, program, rows, partial(_of_cudnn, _CUDNN[name]))
    return found


def _fill(
    found: Ints,
    program: NumberedProgram,
    rows: Ints,
    rule: Callable[[Sequence[_Dimensions], Mapping[str, str]], int],
) -> None:
    """Set the FLOPs of rows: the rule takes the dimensions of the result and two operands."""
    rows = rows[program.operand_count[rows] >= 2]
    shape = program.shape.codes
    columns = [shape[rows], *(shape[program.operand(rows, n)] for n in (0, 1))]
    columns.append(program.attributes.codes[rows])
    each, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
    numbers = []
    for *shapes, attributes in each.T.tolist():
        said = attribute_values(program.attributes.texts[attributes]) if attributes != NONE else {}
        numbers.append(rule([_dimensions(program.shape.texts[code]) for code in shapes], said))
    found[rows] = np.array(numbers, np.int64)[place.ravel()] if len(rows) else NONE


def _dimensions(text: str) -> _Dimensions:
    """The dimensions of an array, or of the first array of a tuple: a library adds a workspace."""
    shape = parse_shape(text)
    while isinstance(shape, TupleShape) and shape.elements:
        shape = shape.elements[0]
    return shape.dimensions if isinstance(shape, ArrayShape) else ()


def _of_dot(arrays: Sequence[_Dimensions], said: Mapping[str, str]) -> int:
    """A dot: each element of the result is a sum over the contracted dimensions.

    >>> _of_dot([(4, 8), (4, 16), (16, 8)], {"lhs_contracting_dims": "{1}"})
    1024
    """
    result, lhs, _ = arrays
    contracted = map(int, re.findall(r"\d+", said.get("lhs_contracting_dims", "")))
    return 2 * prod(result) * prod(lhs[at] for at in contracted)


def _of_library_dot(arrays: Sequence[_Dimensions], _: Mapping[str, str]) -> int:
    """A dot in a library, which names no dimensions: all but the last two are of the batch.

    >>> _of_library_dot([(4, 8), (4, 16), (16, 8)], {})
    1024
    """
    result, lhs, rhs = arrays
    batch = prod(result[:-2])
    # (B M K) (B K N) / (B M N) is B K².
    return 2 * prod(result) * isqrt(prod(lhs) * prod(rhs) // max(prod(result) * batch, 1))


def _of_convolution(arrays: Sequence[_Dimensions], said: Mapping[str, str]) -> int:
    """A convolution: the pairs of result and window that meet an element, for all features.

    >>> _of_convolution([(8, 4, 32), (8, 5, 16), (2, 16, 32)], {"dim_labels": "b0f_0io->b0f",
    ...     "window": "{size=2}"})
    65536
    """
    result, lhs, kernel = arrays
    labels = re.match(r"(\w+)_(\w+)->(\w+)$", said.get("dim_labels", ""))
    if labels is None:
        return NONE
    of_lhs, of_kernel, of_result = (
        dict(zip(names, dims, strict=False))
        for names, dims in zip(labels.groups(), (lhs, kernel, result), strict=True)
    )
    window = dict(part.split("=", 1) for part in said.get("window", "{}")[1:-1].split() if part)
    spatial = [name for name in of_kernel if name.isdecimal()]
    pairs = 1
    for at, name in enumerate(sorted(spatial, key=int)):
        low, _ = _pair(window.get("pad"), at)
        pairs *= _meeting(
            of_lhs.get(name, 1),
            of_kernel[name],
            of_result.get(name, 1),
            stride=_number(window.get("stride"), at),
            low=low,
            lhs_dilate=_number(window.get("lhs_dilate"), at),
            rhs_dilate=_number(window.get("rhs_dilate"), at),
        )
    # The kernel's input features are those of one group already.
    elements = of_result.get("b", 1) * of_result.get("f", 1) * of_kernel.get("i", 1)
    return int(2 * elements * pairs)


def _of_cudnn(
    roles: tuple[int, int, int], arrays: Sequence[_Dimensions], said: Mapping[str, str]
) -> int:
    """A convolution of cuDNN: `roles` say which array is the input, the kernel and the output."""
    image, kernel, output = (arrays[role] for role in roles)
    return _of_convolution([output, image, kernel], said)


def _meeting(
    size: int, window: int, result: int, *, stride: int, low: int, lhs_dilate: int, rhs_dilate: int
) -> int:
    """How many pairs of a place in the result and one in the window meet an element."""
    first = np.arange(result)[:, None] * stride - low
    at = first + np.arange(window)[None, :] * rhs_dilate
    is_element = (at >= 0) & (at < (size - 1) * lhs_dilate + 1) & (at % lhs_dilate == 0)
    return int(is_element.sum())


def _number(text: str | None, at: int) -> int:
    return int(text.split("x")[at]) if text else 1


def _pair(text: str | None, at: int) -> tuple[int, int]:
    if not text:
        return 0, 0
    low, high = _PAIR.findall(text)[at]
    return int(low), int(high)


# How often a loop runs.


def _trip_counts(program: NumberedProgram, facts: pa.Table) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The trip count of each call by a loop, and which calls are a loop's."""
    whiles = program.rows("while")
    is_loop = program.call_attribute.is_one_of("body", "condition")
    is_loop &= np.isin(program.call_row, whiles)
    count = np.full(len(program), NONE)
    known = facts.filter(pc.is_valid(facts["trip_count"]))
    count[known["row"].to_numpy()] = known["trip_count"].to_numpy()
    if len(whiles):
        counters = _Counters(program, facts)
        for row in whiles[count[whiles] == NONE].tolist():
            count[row] = counters.trip_count(row)
    return np.where(is_loop, count[program.call_row], NONE), is_loop


class _Counters:
    """Loops that count: `counter < limit` in the condition, `counter + step` in the body."""

    def __init__(self, program: NumberedProgram, facts: pa.Table) -> None:
        self._program = program
        numbers = facts.filter(pc.is_valid(facts["integer"]))
        self._integers = dict(
            zip(numbers["row"].to_pylist(), numbers["integer"].to_pylist(), strict=True)
        )
        self._less_than = set(facts.filter(facts["is_less_than"])["row"].to_pylist())
        self._body = self._called("body")
        self._condition = self._called("condition")

    def _called(self, attribute: str) -> dict[int, int]:
        chosen = self._program.call_attribute.is_one_of(attribute)
        rows, computations = self._program.call_row[chosen], self._program.call_computation[chosen]
        return dict(zip(rows.tolist(), computations.tolist(), strict=True))

    def trip_count(self, row: int) -> int:
        """How often a loop runs; NONE if it does not count up to what is known."""
        if row not in self._body or row not in self._condition:
            return NONE
        test = int(self._program.root[self._condition[row]])
        if test not in self._less_than:
            return NONE
        counter, limit = (self._origin(operand) for operand in self._operands(test))
        at = self._element(counter)
        end = self._integers.get(limit, self._kept(row, self._element(limit)))
        if at is None or end is None:
            return NONE
        begin, step = self._initial(row, at), self._step(row, at)
        if begin is None or step is None or step <= 0:
            return NONE
        return int(max(0, -((begin - end) // step)))

    def _operands(self, row: int) -> list[int]:
        start, stop = self._program.operand_start[row : row + 2]
        found: list[int] = self._program.operands[start:stop].tolist()
        return found

    def _origin(self, row: int) -> int:
        """The instruction behind copies."""
        while self._program.opcode.at(row) in _PASSING and self._operands(row):
            row = self._operands(row)[0]
        return row

    def _element(self, row: int) -> int | None:
        """Which element of the loop's state an instruction takes."""
        if self._program.opcode.at(row) != "get-tuple-element":
            return None
        is_state = self._program.parameter_number[self._operands(row)[0]] == 0
        return int(self._program.tuple_index[row]) if is_state else None

    def _item(self, row: int, at: int) -> int | None:
        """The instruction that gives an element of a tuple."""
        row = self._origin(row)
        items = self._operands(row) if self._program.opcode.at(row) == "tuple" else []
        return self._origin(items[at]) if at < len(items) else None

    def _initial(self, row: int, at: int) -> int | None:
        item = self._item(self._operands(row)[0], at)
        return None if item is None else self._integers.get(item)

    def _kept(self, row: int, at: int | None) -> int | None:
        """The number in an element of the state that the loop does not change."""
        if at is None:
            return None
        item = self._item(int(self._program.root[self._body[row]]), at)
        is_same = item is not None and self._element(item) == at
        return self._initial(row, at) if is_same else None

    def _step(self, row: int, at: int) -> int | None:
        """What each turn adds to an element of the state."""
        item = self._item(int(self._program.root[self._body[row]]), at)
        if item is None or self._program.opcode.at(item) != "add":
            return None
        first, second = map(self._origin, self._operands(item))
        for counter, step in ((first, second), (second, first)):
            if self._element(counter) == at:
                return self._integers.get(step)
        return None
