"""How many of memhouse's files a command enters: what its reader has to open.

A file counts if one of its functions runs; code that only an import runs does not. Each command
runs in a process of its own, on a warehouse of the samples.

    .venv/bin/python benchmarks/entered.py
    .venv/bin/python benchmarks/entered.py --list -- peaks
"""

import argparse
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
_SAMPLES = ROOT / "tests/data/dumps"
_DUMP = _SAMPLES / "tpu/llama-v5e"
# What the redesign aims at; a command without an aim is shown alone.
COMMANDS = {
    ("peaks",): 6,
    ("check",): 12,
    ("advise", "llama-v5e"): 15,
    ("ingest", str(_DUMP)): 45,
    ("owners", "llama-v5e"): None,
}


def entered(arguments: list[str]) -> set[str]:
    """The files whose functions run while the command does, relative to the package."""
    from memhouse.cli import run

    names: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name not in names and not _imports(frame):
            names.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    sys.argv = ["memhouse", *arguments]
    run()
    sys.setprofile(None)
    inside = [Path(name).relative_to(ROOT) for name in names if name.startswith(f"{ROOT}/")]
    return {str(file) for file in inside if file.parts[0] not in ("benchmarks", ".venv")}


def _imports(frame: FrameType | None) -> bool:
    """Whether an import runs this code: a module's own code is above it."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename != __file__:
            return True
        frame = frame.f_back
    return False


def _counted(arguments: tuple[str, ...], database: Path) -> list[str]:
    """The files that a command enters, counted in a process of its own."""
    listed = database.with_suffix(".files")
    command = [sys.executable, __file__, "--to", str(listed), "--", *arguments]
    command += ["--db", str(database)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return listed.read_text().splitlines()


def main() -> None:
    """Count, and print a line a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the files")
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help="one command instead of those that have an aim")
    options = parser.parse_args()
    if options.to:
        options.to.write_text("\n".join(sorted(entered(options.command))))
        return
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "samples.duckdb"
        _counted(("ingest", *map(str, sorted(_SAMPLES.glob("*/*")))), database)
        wanted = {tuple(options.command): None} if options.command else COMMANDS
        for arguments, aim in wanted.items():
            other = Path(folder) / "other.duckdb" if arguments[0] == "ingest" else database
            files = _counted(arguments, other)
            print(f"{len(files):4} files  {' '.join(arguments)}" + (f" (aim {aim})" if aim else ""))
            if options.list:
                print("\n".join(f"      {file}" for file in files))


if __name__ == "__main__":
    main()
