"""The demo: a warehouse of nights that come with the package, and five commands on it."""

import shlex
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from ... import open as open_warehouse
from ...schema.errors import UsageError
from ..app import build_app
from ..render.text import print_commands, print_prose, print_text

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
    ("memhouse since llama-v5e", "when it changed"),
    ("memhouse check --max-growth 2%", "for nightly jobs"),
)
_YOUR_OWN = (
    ("memhouse record -- python train.py", "a program of yours"),
    ("memhouse ingest DUMPS", "dumps that you have"),
    ("memhouse --help", "all commands"),
)


def walk(db: Path) -> None:
    """Run the steps on the warehouse; what commands say on stderr comes in its place."""
    for number, (typed, what_to_see) in enumerate(STEPS, 1):
        arguments = [*typed.split(), "--db", str(db)]
        print_text(f"\n[{number}/{len(STEPS)}] $ {shlex.join(['memhouse', *arguments])}")
        with redirect_stderr(sys.stdout):
            build_app()(arguments, prog_name="memhouse", standalone_mode=False)
        print_text("")
        print_prose(f"→ {what_to_see}")
    on_db = ["--db", str(db)]
    of_demo = [(shlex.join([*typed.split(), *on_db]), said) for typed, said in _NEXT]
    print_text("\nNext, on these dumps:")
    print_commands(of_demo)
    print_text("\nAnd on your own:")
    print_commands(_YOUR_OWN)


# The nights that come with the package, and a warehouse of them.

# Dumps of two programs for a TPU, a folder for each night.
_NIGHTS = "nights.tar.zst"
_WINDOW_BYTES = 2**25
_NAME = "memhouse-demo.duckdb"


def demo_warehouse(folder: Path) -> Path:
    """The demo's warehouse in a folder: made, or found as an earlier demo left it.

    Raises UsageError for a file of that name that holds other runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    db = folder / _NAME
    with _nights() as nights, open_warehouse(db) as warehouse:
        demo_runs = {night.name for night in nights}
        if not demo_runs.issuperset(warehouse.runs().table["run"].to_pylist()):
            raise UsageError(
                f"{db} holds other runs than the demo's: name a folder for the demo", "folder"
            )
        for night in nights:
            warehouse.ingest(night)
    return db


@contextmanager
def _nights() -> Iterator[list[Path]]:
    """The folders of the nights, the oldest first, until the end of the block."""
    with TemporaryDirectory(prefix="memhouse-demo-") as folder:
        with (
            files(__package__).joinpath(_NIGHTS).open("rb") as packed,
            zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(packed) as tar,
            tarfile.open(fileobj=tar, mode="r|") as archive,
        ):
            archive.extractall(folder, filter="data")
        yield sorted(Path(folder).iterdir())
