"""FLOPs of a program's dots and convolutions, trip counts of its loops, executions of computations.

A multiplication and an addition are two FLOPs. A convolution counts only the positions at which
the window meets an element, and no padding or hole of a dilation: XLA for TPU writes a dot with
batch dimensions as such a convolution.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, isqrt, prod

from .program import NONE, Program, attribute_values
from .shapes import ArrayShape, TupleShape, parse_shape

# These forward their operand's value.
_FORWARDING = ("copy", "bitcast", "convert", "copy-done", "optimization-barrier")
_LIBRARY_DOTS = ("__cublas$", "__onednn$matmul", "__triton_gemm")
# For a cuDNN convolution, which of result, first and second operand (0, 1, 2) is the input, the
# kernel, the output.
_CUDNN_ROLES = {
    "__cudnn$convForward": (1, 2, 0),
    "__cudnn$convBiasActivationForward": (1, 2, 0),
    "__cudnn$convBackwardInput": (0, 2, 1),
    "__cudnn$convBackwardFilter": (1, 0, 2),
}
_LABELS = re.compile(r"(\w+)_(\w+)->(\w+)$")
_PAIR = re.compile(r"(-?\d+)_(-?\d+)")
# Positions are counted one by one: a dot of a million batches takes half a second.
_MAX_WINDOW = 10**7
# Counts of a corrupt text can be larger than any column; they are cut off here.
_MAX_COUNT = 2**63 - 1

Dimensions = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """The work of a program.

    Attributes:
        flops: by row of a dot or convolution, the FLOPs of one execution.
        trip_counts: by row of a while, how often its body runs, where that is known.
        executions: by computation, how often it runs in one run of the program.
        unknown_loops: number of loops that run and have no known trip count; they count as 1.
        total_flops: FLOPs of one run of the program.
    """

    flops: dict[int, int]
    trip_counts: dict[int, int]
    executions: list[int]
    unknown_loops: int
    total_flops: int


def measure_work(program: Program) -> Work:
    """The work of a program."""
    flops = _instruction_flops(program)
    trip_counts = _trip_counts(program)
    executions = _executions(program, trip_counts)
    unknown_loops = sum(
        row not in trip_counts and executions[program.computation[row]] > 0
        for row, opcode in enumerate(program.opcode)
        if opcode == "while"
    )
    total = sum(count * executions[program.computation[row]] for row, count in flops.items())
    return Work(flops, trip_counts, executions, unknown_loops, min(total, _MAX_COUNT))


def _executions(program: Program, trip_counts: Mapping[int, int]) -> list[int]:
    """Number of runs of each computation: the sum over its calls, times trip counts."""
    executions = [0] * len(program.computation_names)
    executions[program.entry] = 1
    calls: dict[int, list[tuple[int, int]]] = {}
    for row, called in program.calls.items():
        times = trip_counts.get(row, 1)
        calls.setdefault(program.computation[row], []).extend(
            (times, callee) for _, callee in called
        )
    for caller in reversed(program.callees_first()):
        for times, callee in calls.get(caller, ()):
            executions[callee] += executions[caller] * times
    return [min(count, _MAX_COUNT) for count in executions]


def _instruction_flops(program: Program) -> dict[int, int]:
    """The FLOPs of each dot and convolution, by row."""
    flops: dict[int, int] = {}
    # Equal layers repeat the same shapes and attributes.
    cache: dict[tuple[str, ...], int | None] = {}
    for row, opcode in enumerate(program.opcode):
        if opcode in ("dot", "convolution"):
            kind = opcode
        elif opcode == "custom-call":
            kind = program.custom_call_target.get(row, "")
            if kind not in _CUDNN_ROLES and not kind.startswith(_LIBRARY_DOTS):
                continue
        else:
            continue
        operands = program.operands[row]
        if len(operands) < 2:
            continue
        shapes = [program.shape[array] for array in (row, *operands[:2])]
        key = (kind, program.attributes.get(row, ""), *shapes)
        if key not in cache:
            cache[key] = _flops(kind, key[1], shapes)
        count = cache[key]
        if count is not None:
            flops[row] = count
    return flops


def _flops(kind: str, attributes: str, shapes: Sequence[str]) -> int | None:
    """The FLOPs of an instruction; `shapes` are its result and its first two operands.

    None if its attributes are corrupt.
    """
    values = attribute_values(attributes)
    try:
        arrays = [_first_array_dimensions(shape) for shape in shapes]
        if kind == "dot":
            return dot_flops(arrays, values)
        if kind == "convolution":
            return convolution_flops(arrays, values)
        if kind in _CUDNN_ROLES:
            image, kernel, output = (arrays[role] for role in _CUDNN_ROLES[kind])
            return convolution_flops([output, image, kernel], values)
        return library_dot_flops(arrays)
    except (ValueError, IndexError, ZeroDivisionError):
        return None


def _first_array_dimensions(text: str) -> Dimensions:
    """The dimensions of an array, or of a tuple's first array; () for a scalar or no array.

    Calls of cuBLAS and cuDNN return the result and a workspace.
    """
    shape = parse_shape(text)
    while isinstance(shape, TupleShape) and shape.elements:
        shape = shape.elements[0]
    return shape.dimensions if isinstance(shape, ArrayShape) else ()


def dot_flops(arrays: Sequence[Dimensions], attributes: Mapping[str, str]) -> int:
    """The FLOPs of a dot: each element of the result is a sum over the contracted dimensions.

    >>> dot_flops([(4, 8), (4, 16), (16, 8)], {"lhs_contracting_dims": "{1}"})
    1024
    """
    result, lhs, _ = arrays
    contracted = map(int, re.findall(r"\d+", attributes.get("lhs_contracting_dims", "")))
    return 2 * prod(result) * prod(lhs[axis] for axis in contracted)


def library_dot_flops(arrays: Sequence[Dimensions]) -> int:
    """The FLOPs of a library's dot, which names no dimensions: all but the last two are batch.

    >>> library_dot_flops([(4, 8), (4, 16), (16, 8)])
    1024
    """
    result, lhs, rhs = arrays
    batch = prod(result[:-2])
    # (B M K) (B K N) / (B M N) is B K².
    return 2 * prod(result) * isqrt(prod(lhs) * prod(rhs) // max(prod(result) * batch, 1))


def convolution_flops(arrays: Sequence[Dimensions], attributes: Mapping[str, str]) -> int | None:
    """The FLOPs of a convolution; None if its attributes do not determine them.

    >>> convolution_flops([(8, 4, 32), (8, 5, 16), (2, 16, 32)], {"dim_labels": "b0f_0io->b0f",
    ...     "window": "{size=2}"})
    65536
    """
    labels = _LABELS.match(attributes.get("dim_labels", ""))
    if labels is None:
        return None
    result, lhs, kernel = arrays
    lhs_sizes, kernel_sizes, result_sizes = (
        dict(zip(names, sizes, strict=False))
        for names, sizes in zip(labels.groups(), (lhs, kernel, result), strict=True)
    )
    window = dict(part.split("=", 1) for part in attributes.get("window", "{}")[1:-1].split())
    strides, lhs_dilations, rhs_dilations = (
        [int(number) for number in window[name].split("x")] if name in window else []
        for name in ("stride", "lhs_dilate", "rhs_dilate")
    )
    padding = _PAIR.findall(window.get("pad", ""))
    pairs: int = 1
    spatial = sorted((name for name in kernel_sizes if name.isdecimal()), key=int)
    for axis, name in enumerate(spatial):
        pairs *= window_pairs(
            lhs_sizes.get(name, 1),
            kernel_sizes[name],
            result_sizes.get(name, 1),
            stride=strides[axis] if strides else 1,
            low=int(padding[axis][0]) if "pad" in window else 0,
            lhs_dilation=lhs_dilations[axis] if lhs_dilations else 1,
            rhs_dilation=rhs_dilations[axis] if rhs_dilations else 1,
        )
    # The kernel's input features are those of one group already.
    elements = result_sizes.get("b", 1) * result_sizes.get("f", 1) * kernel_sizes.get("i", 1)
    total: int = 2 * elements * pairs
    return total


def window_pairs(
    size: int,
    window: int,
    result: int,
    *,
    stride: int = 1,
    low: int = 0,
    lhs_dilation: int = 1,
    rhs_dilation: int = 1,
) -> int:
    """Number of pairs (position in the result, position in the window) that meet an element.

    One spatial dimension. Position r of the result and w of the window are at the offset
    `r * stride + w * rhs_dilation - low` of the dilated input, which has an element at every
    multiple of `lhs_dilation` below `size * lhs_dilation`. Linear in `window`: for each w the
    positions r are an arithmetic progression. Raises ValueError for an absurd window.

    >>> window_pairs(5, 2, 4), window_pairs(4, 3, 4, low=1), window_pairs(3, 1, 5, lhs_dilation=2)
    (8, 10, 3)
    """
    if window > _MAX_WINDOW:
        raise ValueError("the window is larger than any of XLA's")
    common = gcd(stride, lhs_dilation)
    # r is determined modulo `step` where it exists.
    step = lhs_dilation // common
    inverse: int = pow(stride // common, -1, step)
    last = (size - 1) * lhs_dilation
    pairs = 0
    for w in range(window):
        offset = low - w * rhs_dilation
        if offset % common:
            continue
        first_r = max(-(-offset // stride), 0)
        last_r = min((last + offset) // stride, result - 1)
        remainder = offset // common * inverse % step
        first_r += (remainder - first_r) % step
        if first_r <= last_r:
            pairs += (last_r - first_r) // step + 1
    return pairs


def _trip_counts(program: Program) -> dict[int, int]:
    """The trip count of each loop, by row: as XLA states it, otherwise from its counter."""
    trip_counts = dict(program.trip_counts)
    for row, opcode in enumerate(program.opcode):
        if opcode == "while" and row not in trip_counts:
            count = _count_iterations(program, row)
            if count is not None:
                trip_counts[row] = count
    return trip_counts


def _count_iterations(program: Program, loop: int) -> int | None:
    """Number of iterations of a loop; None if it does not count up to a constant limit.

    The state of a loop is a tuple; the counter is one of its elements:

        condition: ROOT %test = pred[] compare(%counter, %limit), direction=LT
        body:      %next = s32[] add(%counter, %step)
                   ROOT %state = (s32[], f32[8]) tuple(%next, %data)
    """
    called = dict(program.calls.get(loop, ()))
    test = program.root[called["condition"]] if "condition" in called else NONE
    if test not in program.less_than or "body" not in called:
        return None
    counter, limit = (_origin(program, operand) for operand in program.operands[test])
    element, limit_value = _state_element(program, counter), program.integers.get(limit)
    carried = _state_element(program, limit)
    body_root = program.root[called["body"]]
    if carried is not None and _is_unchanged(program, body_root, carried):
        initial_limit = _tuple_element(program, program.operand(loop, 0), carried)
        limit_value = program.integers.get(initial_limit)
    if element is None or limit_value is None:
        return None
    initial_value = program.integers.get(_tuple_element(program, program.operand(loop, 0), element))
    step = _step(program, _tuple_element(program, body_root, element), element)
    if initial_value is None or step is None or step <= 0:
        return None
    return max(0, -((initial_value - limit_value) // step))


def _origin(program: Program, row: int) -> int:
    """The instruction whose value an instruction forwards."""
    while program.opcode[row] in _FORWARDING and program.operands[row]:
        row = program.operands[row][0]
    return row


def _state_element(program: Program, row: int) -> int | None:
    """Index of the element of the loop's state that an instruction takes; None if none."""
    if row == NONE or program.opcode[row] != "get-tuple-element" or not program.operands[row]:
        return None
    is_state = program.parameter_number[program.operands[row][0]] == 0
    return program.tuple_index[row] if is_state else None


def _is_unchanged(program: Program, body_root: int, element: int) -> bool:
    """Whether a loop's body leaves an element of the state as it is."""
    return _state_element(program, _tuple_element(program, body_root, element)) == element


def _tuple_element(program: Program, row: int, element: int) -> int:
    """The instruction that defines an element of a tuple, or NONE."""
    row = _origin(program, row)
    elements = program.operands[row] if program.opcode[row] == "tuple" else ()
    return _origin(program, elements[element]) if element < len(elements) else NONE


def _step(program: Program, row: int, element: int) -> int | None:
    """The number that an instruction adds to an element of the state."""
    if row == NONE or program.opcode[row] != "add":
        return None
    first, second = (_origin(program, operand) for operand in program.operands[row])
    for counter, step in ((first, second), (second, first)):
        if _state_element(program, counter) == element:
            return program.integers.get(step)
    return None
