"""Console blocks of the documentation: their commands, and what a terminal shows for them."""

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyte

from .command import MEMHOUSE, run_on

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r'^```\w+ title="(\S+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
# What no two machines show alike: how long it took, and how large bokeh's script is.
_SECONDS = re.compile(r"\b\d+\.\d s\b")
_PAGE = re.compile(r"(?<=\.html: )[\d.]+ [KM]iB")
_ELIDED = "…"
# Wide enough that nothing wraps.
_COLUMNS = 250
_TERM = "xterm-256color"


@dataclass(frozen=True)
class Command:
    """A command as the documentation shows it, and what it is said to print."""

    text: str
    output: list[str]

    def matches(self, shown: str) -> bool:
        """Whether a terminal showed the same; a line `…` stands for any lines."""
        found = _plain(shown)
        pattern = r"\n".join(
            r".*" if line == _ELIDED else re.escape(_steady(line)) for line in self.output
        )
        return re.fullmatch(pattern, found, re.DOTALL) is not None

    @staticmethod
    def lines(shown: str) -> list[str]:
        """The lines that a terminal showed in the end."""
        return _displayed(shown).splitlines()


def blocks(document: Path) -> list[list[Command]]:
    """The commands of each console block, in order."""
    return [commands_of(block) for block in _BLOCK.findall(document.read_text())]


def write_files(document: Path, folder: Path) -> None:
    """Write the files that a document shows under their names."""
    for name, text in _FILE.findall(document.read_text()):
        (folder / name).write_text(text)


def commands_of(block: str) -> list[Command]:
    """The commands of one block, in order."""
    commands: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:].partition("     # ")[0], []))
        elif commands and not _is_whole(commands[-1].text):
            commands[-1] = Command(f"{commands[-1].text}\n{line}", [])
        else:
            commands[-1].output.append(line)
    return commands


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def replayed(
    asked: Iterable[list[Command]],
    folder: Path,
    left_out: Sequence[str] = (),
) -> Iterator[tuple[Command, str]]:
    """Each command, and what a terminal shows for it, as a reader types along in a folder.

    What a command exports holds for those that follow. Blocks with one of the words are left out.
    memhouse runs in this process where no shell is needed, which is quick.
    """
    exported: dict[str, str] = {}
    for block in asked:
        if any(word in command.text for command in block for word in left_out):
            continue
        for command in block:
            if command.text.startswith("export "):
                name, value = command.text.removeprefix("export ").split("=")
                exported[name] = value
            elif _needs_no_shell(command.text):
                words = shlex.split(command.text)[1:]
                yield command, _on_terminal_here(words, folder, exported)
            else:
                yield command, on_terminal(command.text, folder, env=exported)


def on_terminal(
    command: str, folder: Path, columns: int = 80, env: Mapping[str, str] | None = None
) -> str:
    """What a terminal of so many columns shows for a shell command; its errors too."""
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "MEMHOUSE_DB")}
    path = f"{MEMHOUSE.parent}{os.pathsep}{os.environ['PATH']}"
    leader, follower = _terminal(columns)
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment | {"TERM": _TERM, "PATH": path} | dict(env or {}),
    )
    os.close(follower)
    shown = _read_to_the_end(leader)
    process.wait(timeout=60)
    return shown


def _on_terminal_here(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    """The same for memhouse with these words, run in this process."""
    leader, follower = _terminal(80)
    with ThreadPoolExecutor(1) as reader:
        shown = reader.submit(_read_to_the_end, leader)
        with os.fdopen(os.dup(follower)) as given, os.fdopen(follower, "w", buffering=1) as out:
            run_on(given, out, out, *words, cwd=folder, env={"TERM": _TERM, **env})
        return shown.result()


def _needs_no_shell(command: str) -> bool:
    unquoted = re.sub(r"\"[^\"]*\"|'[^']*'", "", command)
    is_plain = not re.search(r"[|&;<>*?~\[]", unquoted) and not re.search("[$`]", command)
    return command.startswith("memhouse ") and is_plain


def _terminal(columns: int) -> tuple[int, int]:
    """A new terminal of so many columns: both its ends."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return leader, follower


def _read_to_the_end(leader: int) -> str:
    shown = b""
    with suppress(OSError):  # How the end of a terminal shows.
        while chunk := os.read(leader, 65536):
            shown += chunk
    os.close(leader)
    return shown.decode()


def _plain(shown: str) -> str:
    return _steady(_displayed(shown))


def _displayed(shown: str) -> str:
    """The lines that a terminal shows in the end: progress bars are gone by then."""
    screen = pyte.Screen(_COLUMNS, shown.count("\n") + 2)
    pyte.Stream(screen).feed(shown.replace("\r\n", "\n").replace("\n", "\r\n"))
    lines = [line.rstrip() for line in screen.display]
    return "\n".join(lines).strip("\n")


def _steady(text: str) -> str:
    return _PAGE.sub("0 KiB", _SECONDS.sub("0.0 s", text))
