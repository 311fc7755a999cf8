"""Memory spaces: XLA's numbers for them, and their common names."""

from typing import Final

from .parts import Parts

SPACES: Final = ("hbm", "host", "vmem", "smem", "sflag", "cmem", "other")
# By platform and XLA's number: only some dumps have XLA's name. 5 of a GPU is pinned host memory.
_SPACE_OF_NUMBER: Final[dict[tuple[str | None, int], str]] = {
    ("tpu", 1): "vmem",
    ("tpu", 2): "smem",
    ("gpu", 5): "host",
}
# libtpu's memory usage reports use these names, in every version that names spaces at all.
_LIBTPU_NAMES: Final = {0: "default", 1: "vmem", 2: "smem", 4: "host"}


def name_spaces(parts: Parts, platform: str | None) -> None:
    """Name the spaces of a TPU program's binary, which has only the numbers."""
    if parts.space_names is None and parts.assignment is not None and platform == "tpu":
        used = sorted({allocation.memory_space for allocation in parts.assignment.allocations})
        parts.space_names = {
            number: _LIBTPU_NAMES.get(number, f"color_{number}") for number in used
        }


def space_of(memory_space: int, name: str | None, platform: str | None) -> str:
    """The common name of a memory space, one of SPACES: by its number and XLA's name for it.

    >>> space_of(0, "default", "tpu"), space_of(0, None, "cpu"), space_of(7, "color_7", "tpu")
    ('hbm', 'host', 'other')
    >>> space_of(1, None, "tpu"), space_of(1, None, None)
    ('vmem', 'other')
    """
    if name is not None and name.lower() in SPACES:
        return name.lower()
    if memory_space == 0:
        return "host" if platform == "cpu" else "hbm"
    return _SPACE_OF_NUMBER.get((platform, memory_space), "other")
