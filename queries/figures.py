"""What `trends` keeps history of: the figures, and what else changed with them."""

from collections.abc import Mapping

FIGURES = (
    "peak_bytes",
    "total_bytes",
    "argument_bytes",
    "output_bytes",
    "alias_bytes",
    "constant_bytes",
    "thread_local_bytes",
    "temp_bytes",
    "fragmentation_bytes",
    "padding_bytes",
)

_CHANGES = {
    "signature_changed": "signature",
    "compiler_changed": "compiler",
    "flags_changed": "flags",
    "content_changed": "program",
}


def what_changed(row: Mapping[str, object]) -> list[str]:
    """What a row of `trends` says has changed since the previous run."""
    return [name for column, name in _CHANGES.items() if row[column]]
