"""Plain parts of columnar ones."""

from .. import parts as plain
from .bridge import plain_program
from .bridge_w import plain_parts
from .parts import Parts
from .program import number_program


def to_plain(parts: Parts) -> plain.Parts:
    """The plain parts."""
    result = plain_parts(parts)
    names = parts.space_names
    if names is not None:
        result.space_names = dict(
            zip(names["memory_space"].to_pylist(), names["space_name"].to_pylist(), strict=True)
        )
    result.is_binary, result.totals = parts.is_binary, parts.totals
    result.pass_texts = parts.pass_texts
    if parts.hlo is not None:
        result.program = plain_program(number_program(parts.hlo), parts.hlo)
    return result
