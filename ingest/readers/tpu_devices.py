"""TPUs by their names in libtpu: their common names, and the memory that a program can use.

libtpu names a chip by a code name, or in some releases by a number. The memory is XLA's capacity:
the device's memory without the part that libtpu reserves. Both were measured with libtpu:
`docs/devices.md` also lists the differences between releases.
"""

from typing import NamedTuple

_MIB = 2**20
_GIB = 2**30


class Device(NamedTuple):
    """The target of a compilation: a chip, or a core where each core runs a program of its own."""

    kind: str
    memory_bytes: int


V2, V3, V4, V5, V6E, V7X = "TPU v2", "TPU v3", "TPU v4", "TPU v5p", "TPU v6e", "TPU7x"
_VERSIONS = {
    "JELLYFISH": V2,
    "ba16c7433": V2,
    "DRAGONFISH": V3,
    "6bf72d463e": V3,
    "PUFFERFISH": V4,
    "e0897fcce0": V4,
    "VIPERFISH": V5,
    "2093c6a02": V5,
    "GHOSTLITE": V6E,
    "cc8675309": V6E,
    "6acc60406": V7X,
}
# By version, variant and the name of the chip's configuration. The two cores of a v4 or v5p are one
# device, unless the configuration separates them; those of v2, v3 and 7x are two devices.
_DEVICES = {
    (V2, "", "default"): Device("TPU v2", 8 * _GIB - 530 * _MIB),
    (V3, "", "default"): Device("TPU v3", 16 * _GIB - 530 * _MIB),
    (V4, "", "default"): Device("TPU v4 core", 16 * _GIB - 1539 * _MIB // 2),
    (V4, "", "megacore"): Device("TPU v4", 32 * _GIB - 1283 * _MIB),
    (V5, "lite", "default"): Device("TPU v5e", 16 * _GIB - 258 * _MIB),
    (V5, "", "default"): Device("TPU v5p", 96 * _GIB - 279 * _MIB),
    (V5, "", "megachip"): Device("TPU v5p", 96 * _GIB - 279 * _MIB),
    (V5, "", "legacy"): Device("TPU v5p core", 48 * _GIB - 535 * _MIB // 2),
    (V6E, "", "default"): Device("TPU v6e", 32 * _GIB - 776 * _MIB),
    (V7X, "", "default"): Device("TPU7x", 96 * _GIB - 1292 * _MIB),
}


def find_device(version: str, variant: str, configuration: str) -> Device | None:
    """The TPU of a version, variant and configuration as libtpu prints them; None if unknown."""
    return _DEVICES.get((_VERSIONS.get(version, ""), variant, configuration or "default"))
