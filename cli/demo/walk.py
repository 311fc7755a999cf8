"""The demo: a warehouse of nightly runs from dumps in this package, and five commands on it."""

import shlex
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from ... import open as open_warehouse
from ...schema.errors import UsageError
from ..commands.advise import advise
from ..commands.diff import diff
from ..commands.owners import owners
from ..commands.peaks import peaks
from ..commands.trends import trends
from ..render.text import print_commands, print_prose, print_text

# What is typed after `memhouse`, the command with these arguments, and its explanation.
STEPS: tuple[tuple[str, Callable[[str], None], str], ...] = (
    (
        "peaks",
        peaks,
        "The peak of each program, by memory space: hbm is the chip's main memory, vmem and smem "
        "are memories of its core. Headroom is the unused memory of the chip.",
    ),
    (
        "owners llama-v5e -n 5",
        lambda db: owners("llama-v5e", db, limit=5),
        "The owners of the training step's peak, by line of Python. (arguments) are the weights, "
        "the optimizer's state and the batch. Also --by scope, role, op, dtype or pass.",
    ),
    (
        "trends",
        trends,
        "The growth from run to run, and its causes: the decoder's cache became longer, the "
        "training step got a larger batch, then a third layer, and finally lost a donation.",
    ),
    (
        "diff 2026-10-07 2026-10-08 -n 3",
        lambda db: diff("2026-10-07", "2026-10-08", db, limit=3),
        "The parts of that last step: the arguments are no longer donated (alias), so the "
        "optimizer's results are additional buffers.",
    ),
    (
        "advise llama-v5e",
        lambda db: advise("llama-v5e", db),
        "The change with the largest saving: the program is replayed with the arguments donated "
        "again, and its peak falls by the growth of that run.",
    ),
)
_NEXT = (
    ("memhouse since llama-v5e", "last change of its memory"),
    ("memhouse check --max-growth 2%", "gate for nightly jobs"),
)
_USER_COMMANDS = (
    ("memhouse record -- python train.py", "record a program"),
    ("memhouse ingest DUMPS", "ingest existing dumps"),
    ("memhouse --help", "list all commands"),
)
# Dumps of two programs for a TPU, a folder per nightly run.
_ARCHIVE = "nights.tar.zst"
_WINDOW_BYTES = 2**25
_NAME = "memhouse-demo.duckdb"


def walk(db: Path) -> None:
    """Run and explain the steps; stderr goes to stdout, so that the output stays in order."""
    on_db = ["--db", str(db)]
    for number, (typed, command, explanation) in enumerate(STEPS, 1):
        words = ["memhouse", *typed.split(), *on_db]
        print_text(f"\n[{number}/{len(STEPS)}] $ {shlex.join(words)}")
        with redirect_stderr(sys.stdout):
            command(str(db))
        print_text("")
        print_prose(f"→ {explanation}")
    print_text("\nNext, on these dumps:")
    print_commands(
        [(shlex.join([*command.split(), *on_db]), purpose) for command, purpose in _NEXT]
    )
    print_text("\nAnd on your own:")
    print_commands(_USER_COMMANDS)


def demo_warehouse(folder: Path) -> Path:
    """Create the demo's warehouse in a folder, or complete an existing one; return its path.

    Raises UsageError for a file of that name with other runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    db = folder / _NAME
    with _run_folders() as run_folders, open_warehouse(db) as warehouse:
        demo_runs = {run_folder.name for run_folder in run_folders}
        if not demo_runs.issuperset(warehouse.runs().table["run"].to_pylist()):
            raise UsageError(f"{db} has other runs than the demo's: name another folder", "folder")
        for run_folder in run_folders:
            warehouse.ingest(run_folder)
    return db


@contextmanager
def _run_folders() -> Iterator[list[Path]]:
    """Extract the dumps to a temporary folder; yields the runs' folders, the oldest first."""
    with TemporaryDirectory(prefix="memhouse-demo-") as folder:
        with (
            files(__package__).joinpath(_ARCHIVE).open("rb") as packed,
            zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(packed) as tar,
            tarfile.open(fileobj=tar, mode="r|") as archive,
        ):
            archive.extractall(folder, filter="data")
        yield sorted(Path(folder).iterdir())
