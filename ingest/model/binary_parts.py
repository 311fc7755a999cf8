"""Joins what a dump's texts say with what its binary says.

The texts come first: only they have XLA's order of positions and uses, and the names of the
memory spaces.
"""

from dataclasses import replace

import pyarrow.compute as pc

from .parts import HloText, Parts


def with_binary(texts: Parts, binary: Parts, *, is_damaged: bool) -> Parts:
    """The texts' parts with what they lack; the binary's parts alone if a text is damaged."""
    if is_damaged and binary.buffer_assignment is not None:
        return replace(binary, space_names=texts.space_names, is_binary=True)
    parts = replace(texts)
    if parts.hlo is None:
        parts.hlo = binary.hlo
    elif binary.hlo is not None:
        parts.hlo = _with_shardings(parts.hlo, binary.hlo)
        if not len(parts.hlo.stack_frames):
            parts.hlo = _with_frames(parts.hlo, binary.hlo)
    if parts.buffer_assignment is None and binary.buffer_assignment is not None:
        parts.buffer_assignment = binary.buffer_assignment
        parts.is_binary = True
    return parts


def _with_shardings(text: HloText, binary: HloText) -> HloText:
    """The text with the binary's shardings: the newest libtpu prints none of arguments."""
    shapes, others = text.entry_shapes, binary.entry_shapes
    if shapes is None or others is None or len(shapes) != len(others):
        return text
    # The rows of both are in the order of the signature.
    column = shapes.schema.get_field_index("sharding")
    filled = pc.coalesce(shapes["sharding"], others["sharding"])
    return replace(text, entry_shapes=shapes.set_column(column, "sharding", filled))


def _with_frames(text: HloText, binary: HloText) -> HloText:
    """The text with the binary's stack frames: up to JAX 0.7 only the binary has them."""
    at = pc.index_in(
        text.instructions["instruction"],
        value_set=binary.instructions["instruction"].combine_chunks(),
    )
    column = text.instructions.schema.get_field_index("stack_frame_id")
    instructions = text.instructions.set_column(
        column, "stack_frame_id", binary.instructions["stack_frame_id"].take(at)
    )
    return replace(text, instructions=instructions, stack_frames=binary.stack_frames)
