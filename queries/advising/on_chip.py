"""What a TPU keeps on chip, and so the bytes below which a change of lives says nothing."""

from .asked_program import Program

# The most that a core of any TPU has, where the dump does not say which one it is for.
_MOST = 128 * 2**20
_WORTH = 0.01


def memory_on_chip(program: Program) -> int:
    """The bytes of VMEM, which XLA fills anew after a change; 0 but on TPU."""
    return (program.vmem_bytes or _MOST) if program.platform == "tpu" else 0


def least_saving(program: Program) -> int:
    """The saving from which on a finding about residuals is told."""
    return max(int(_WORTH * program.layout.peak_bytes), memory_on_chip(program))
