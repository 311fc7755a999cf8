"""What a recorded command is called: the workload, and part of the run's name."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path, PurePath

_UNUSUAL = re.compile(r"[^\w.+-]+")


def command_name(command: Sequence[str]) -> str:
    """The name of the Python script that is run, else of its module, else of the program."""
    script = script_of(command)
    if script is not None:
        name = script.stem
    elif "-m" in command[1:-1]:
        name = command[command.index("-m", 1) + 1]
    else:
        name = PurePath(command[0]).stem
    # It becomes a folder's name, which must not be hidden or lead elsewhere.
    return _UNUSUAL.sub("_", name).strip("._") or "command"


def script_of(command: Sequence[str]) -> Path | None:
    """The Python script among the words of the command."""
    return next((Path(word) for word in command if word.endswith(".py")), None)


def default_run(name: str, start: datetime) -> str:
    """The name of the command's run, such as train-2026-11-22T04-15-08."""
    return f"{name}-{start:%Y-%m-%dT%H-%M-%S}"
