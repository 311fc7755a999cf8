"""Reader of `BufferAssignment:`: the allocations and their values."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DumpError
from ..limits import LARGEST_SIZE
from ..model.parts import BufferAssignment
from ..model.shape_sizes import shape_columns
from .lines import Lines

# As BufferAllocation::ToShortString prints it, with an address only in 2020 (seed 004).
_ALLOCATION = (
    r"^allocation (?P<allocation_index>\d+): (?:0x(?P<address>[0-9a-f]+), )?"
    r"size (?P<size_bytes>\d+)(?:, color (?P<memory_space>\d+))?(?:, page \d+)?"
    r"(?P<parameter>, parameter (?P<parameter_number>\d+), shape \|(?P<parameter_shape>[^|]*)\|"
    r" at ShapeIndex (?P<parameter_shape_index>\{[\d,]*\}))?"
    r"(?P<output>, output shape is \|(?P<output_shape>[^|]*)\|)?"
    r"(?P<constant>, constant)?(?P<thread_local>, thread-local)?"
    r"(?P<live_out>, maybe-live-out)?(?P<temp>, preallocated-temp)?:$"
)
# ` (phi)` marks a merged value of a loop or conditional. The seeds have none, but every program
# with a `while` has some (`tpu/llama-v5e`), and its figures depend on them.
VALUE_NAME = (
    r"<(?P<value_id>\d+) (?P<instruction>[^ {>]+)(?P<shape_index>\{[\d,]*\})?"
    r"(?P<phi> \(phi\))? @(?P<memory_space>\d+)>"
)
_VALUE = (
    r"^ value: " + VALUE_NAME + r" \(size=(?P<size_bytes>\d+),offset=(?P<offset_bytes>\d+)\): "
    r"(?P<shape>.+)$"
)
# The newest XLA lists values of another color twice: here, and among the values above.
_REUSED = (" reused by buffers of a different color:", "  value: ")


def read_buffer_assignment(section: Lines) -> BufferAssignment:
    """Read the part of a dump that starts with `BufferAssignment:`. Raises DumpError."""
    if section.first() != "BufferAssignment:":
        raise DumpError(
            "not a buffer assignment: expected 'BufferAssignment:' in the first line",
            int(section.numbers[0]),
        )
    body = section.between(1, len(section))
    is_allocation = body.starting("allocation ")
    is_value = body.starting(" value: ")
    other = ~(is_allocation | is_value | body.equal(""))
    for reused in _REUSED:
        other &= ~body.starting(reused)
    if other.any():
        body.refuse(other, "expected an allocation or a value")
    allocations = _allocations(body.where(is_allocation))
    if not len(allocations):
        raise DumpError(
            "the file ends before its first allocation: dump the program again",
            int(section.numbers[-1]),
        )
    # A value belongs to the last allocation line before the value.
    owner = np.cumsum(is_allocation)[is_value] - 1
    if len(owner) and owner[0] < 0:
        body.refuse(is_value, "expected an allocation before the first value")
    values = _values(body.where(is_value))
    index = allocations["allocation_index"].take(pa.array(owner))
    return BufferAssignment(allocations, values.append_column("allocation_index", index))


def _allocations(lines: Lines) -> pa.Table:
    found = lines.extract(_ALLOCATION, "an allocation")
    is_parameter = pc.not_equal(found["parameter"], "")
    is_output = pc.not_equal(found["output"], "")
    null = pa.scalar(None, pa.large_string())
    shape = pc.if_else(
        is_parameter, found["parameter_shape"], pc.if_else(is_output, found["output_shape"], null)
    )
    return pa.table(
        {
            "allocation_index": lines.integers(found["allocation_index"]),
            "memory_space": pc.fill_null(lines.integers(found["memory_space"]), 0),
            "size_bytes": lines.integers(found["size_bytes"], most=LARGEST_SIZE),
            "is_parameter": is_parameter,
            "parameter_number": lines.integers(found["parameter_number"]),
            "parameter_shape_index": pc.if_else(is_parameter, found["parameter_shape_index"], null),
            "is_output": is_output,
            "is_constant": pc.not_equal(found["constant"], ""),
            "is_thread_local": pc.not_equal(found["thread_local"], ""),
            "maybe_live_out": pc.not_equal(found["live_out"], ""),
            "is_temp": pc.not_equal(found["temp"], ""),
            "shape": shape,
            "address": _addresses(lines, found["address"]),
        }
    )


def _addresses(lines: Lines, texts: pa.LargeStringArray) -> pa.Int64Array:
    if pc.all(pc.equal(texts, "")).as_py():
        return pa.nulls(len(texts), pa.int64())
    too_long = pc.greater(pc.binary_length(texts), 15)
    if pc.any(too_long).as_py():
        lines.refuse(np.asarray(too_long.to_numpy(zero_copy_only=False)), "an address is too long")
    return pa.array([int(text, 16) if text else None for text in texts.to_pylist()], pa.int64())


def _values(lines: Lines) -> pa.Table:
    found = lines.extract(_VALUE, "a value")
    size_bytes = lines.integers(found["size_bytes"], most=LARGEST_SIZE)
    try:
        sizes = shape_columns(found["shape"])
    except ValueError as error:
        lines.refuse(_unparsable(found["shape"]), str(error))
    return pa.table(
        {
            **value_name_columns(lines, found),
            "offset_bytes": lines.integers(found["offset_bytes"], most=LARGEST_SIZE),
            "size_bytes": size_bytes,
            # A tuple has no elements of its own, so its size is its index table, without padding.
            "logical_bytes": pc.coalesce(sizes["logical_bytes"], size_bytes),
            "shape": found["shape"],
            "element_type": sizes["element_type"],
        }
    )


def _unparsable(shapes: pa.LargeStringArray) -> npt.NDArray[np.bool_]:
    """Which shapes are invalid; only called if at least one is."""

    def is_bad(shape: str) -> bool:
        try:
            shape_columns(pa.array([shape]))
        except ValueError:
            return True
        return False

    return np.array([is_bad(shape) for shape in shapes.to_pylist()])


def value_name_columns(lines: Lines, found: dict[str, pa.LargeStringArray]) -> dict[str, pa.Array]:
    """The columns of a value's name, from the groups of VALUE_NAME.

    XLA prints the shape index only if the defining instruction's shape is a tuple. Otherwise
    the value is the whole array, `{}`.
    """
    whole = pa.scalar("{}", pa.large_string())
    return {
        "value_id": lines.integers(found["value_id"]),
        "instruction": found["instruction"],
        "shape_index": pc.if_else(pc.equal(found["shape_index"], ""), whole, found["shape_index"]),
        "is_phi": pc.not_equal(found["phi"], ""),
        "memory_space": lines.integers(found["memory_space"]),
    }
