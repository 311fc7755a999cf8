"""The skeleton of a program: what its arguments are called, and how many dimensions they have."""

import pyarrow as pa
import pyarrow.compute as pc

from ...schema.ids import skeleton_id


def skeleton_id_of(entry_shapes: pa.Table | None) -> int | None:
    """The skeleton's id; None if no argument has a name: such skeletons are equal by chance.

    `entry_shapes` is as in the warehouse's table, in the order of the signature.
    """
    if entry_shapes is None:
        return None
    arguments = entry_shapes.filter(pc.invert(entry_shapes["is_output"]))
    names = arguments["argument_name"]
    if names.null_count == len(names):
        return None
    ranks = map(_rank, arguments["shape"].to_pylist())
    return skeleton_id(zip(pc.fill_null(names, "").to_pylist(), ranks, strict=True))


def _rank(shape: str) -> int:
    """The number of dimensions: 2 for `bf16[8,128]{1,0}`; 0 for a scalar or a token."""
    dimensions = shape.partition("[")[2].partition("]")[0]
    return dimensions.count(",") + 1 if dimensions else 0
