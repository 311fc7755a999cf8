"""The walk through five commands: each as it is typed, what it prints, and what to see in it."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

from ..app import app_for
from ..render.text import print_prose, print_text

# What is typed after `memhouse`, and what to see in its answer.
STEPS = (
    (
        "peaks",
        "What each program needs, by memory space: hbm is the chip's main memory, vmem and smem "
        "are memories of its core. Headroom is what the chip has left.",
    ),
    (
        "owners llama-v5e -n 5",
        "Whose the peak of the training step is, by line of Python. (arguments) are the weights, "
        "the optimizer's state and the batch. Also --by scope, role, op, dtype or pass.",
    ),
    (
        "trends",
        "What grew in which night, and why: the decoder's cache became longer, the training step "
        "got a larger batch, then a third layer, and at last lost a donation.",
    ),
    (
        "diff 2026-10-07 2026-10-08 -n 3",
        "What that last step is made of: nothing is shared (alias) with the arguments any more, "
        "so the optimizer's results are buffers of their own.",
    ),
    (
        "advise llama-v5e",
        "What to change first: the program is replayed with the arguments donated again, and its "
        "peak falls by what that night had added.",
    ),
)
_NEXT = (
    ("since llama-v5e", "when it changed"),
    ("check --max-growth 2%", "for nightly jobs"),
)
_YOUR_OWN = (
    ("record -- python train.py", "a program of yours"),
    ("ingest DUMPS", "dumps that you have"),
    ("--help", "all commands"),
)


def walk(db: Path) -> None:
    """Run the steps on the warehouse; what commands say on stderr comes in its place."""
    for number, (typed, what_to_see) in enumerate(STEPS, 1):
        arguments = [*typed.split(), "--db", str(db)]
        print_text(f"\n[{number}/{len(STEPS)}] $ {shlex.join(['memhouse', *arguments])}")
        with redirect_stderr(sys.stdout):
            app_for(arguments)(arguments, prog_name="memhouse", standalone_mode=False)
        print_text("")
        print_prose(f"→ {what_to_see}")
    of_demo = [(shlex.join([*typed.split(), "--db", str(db)]), said) for typed, said in _NEXT]
    print_text("\nNext, on these dumps:")
    _print_listed(of_demo)
    print_text("\nAnd on your own:")
    _print_listed(_YOUR_OWN)


def _print_listed(commands: Sequence[tuple[str, str]]) -> None:
    width = max(len(typed) for typed, _ in commands)
    for typed, said in commands:
        print_text(f"  memhouse {typed:{width}}  # {said}")
