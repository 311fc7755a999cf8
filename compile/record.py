"""Runs a command so that XLA dumps what it compiles, and ingests that as one run."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath
from types import FrameType, TracebackType
from typing import Self

from ..ingest.choose_run import Run
from ..ingest.pipeline import Summary, ingest_programs, write_empty
from ..ingest.sources.dump_folder import find_dumps, is_wanted
from ..ingest.sources.dumped_program import DumpedProgram
from ..ingest.sources.files import open_source
from ..ingest.sources.lowered import forget_folder
from ..ingest.workers import Workers
from ..schema import clock
from ..schema.connection import database_path
from ..schema.errors import (
    FileError,
    MemhouseError,
    UnpreparedError,
    UsageError,
    WarehouseBusyError,
    with_remedy,
)
from ..schema.store import Store, open_store

# What became of a recorded command.


@dataclass
class Recorded:
    """What became of a command.

    status: its exit status, 128+N if signal N killed it; start: when it began; run_id: the run that
    holds what it compiled; labels: the run's labels; summary: of the ingest, None until it is
    done; notes: what to tell the user, one line each.
    """

    status: int
    run_id: str
    start: datetime
    labels: Mapping[str, str]
    summary: Summary | None = None
    notes: list[str] = field(default_factory=list)


class NotIngestedError(MemhouseError):
    """The command has run, but its dumps could not be ingested: they are still in `folder`.

    The cause is what went wrong; `recorded` is what is known of the command.
    """

    def __init__(self, recorded: Recorded, folder: Path) -> None:
        super().__init__(f"what was compiled is not ingested, but kept in {folder}")
        self.recorded = recorded
        self.folder = folder


# A question to another program, which answers while the recorded command runs.

_LONGEST_SECONDS = 10


class Asked:
    """A program that was started, and ends with the block; what it cannot answer is no error."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._process: subprocess.Popen[str] | None = None
        # Without a command there is nobody to ask.
        if not command:
            return
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="backslashreplace",
                # Ctrl-C is for the recorded command.
                start_new_session=True,
            )
        except (OSError, ValueError):
            return

    def lines(self) -> list[str]:
        """The lines of its answer; none if it failed, or takes too long."""
        if self._process is None:
            return []
        try:
            answer, _ = self._process.communicate(timeout=_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            return []
        return answer.splitlines() if self._process.returncode == 0 else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.communicate()


# The commit that a recorded command was run at.

_OID, _HEAD = "# branch.oid ", "# branch.head "


def ask_git(folder: Path, environment: Mapping[str, str]) -> Asked:
    """Ask git for the state of the checkout that the folder is in."""
    return Asked(
        # Files that git does not know are no change of the program: logs, checkpoints.
        ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
        # Git must not lock the index that the command may use.
        {**environment, "GIT_OPTIONAL_LOCKS": "0"},
        folder,
    )


def git_labels(answer: Iterable[str]) -> dict[str, str]:
    """The labels commit, branch and dirty; none outside a checkout, no branch if detached."""
    found: dict[str, str] = {}
    dirty = False
    for line in answer:
        if line.startswith(_OID):
            found["commit"] = line.removeprefix(_OID)
        elif line.startswith(_HEAD):
            found["branch"] = line.removeprefix(_HEAD)
        elif not line.startswith("#"):
            dirty = True
    if found.get("branch") == "(detached)":
        del found["branch"]
    # A repository without a commit.
    if found.get("commit") == "(initial)":
        del found["commit"]
    return {**found, "dirty": str(dirty).lower()} if "commit" in found else found


# The versions of the packages that a recorded command compiles with.
#
# They are those of the Python that runs the command, which may be another environment's. This
# Python is asked for the metadata of its packages; none of them is imported.

# The packages to ask for, by label: the first that is installed counts.
_PACKAGES = {
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "libtpu": ("libtpu", "libtpu-nightly"),
    "torch_xla": ("torch_xla",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
}
# The current folder is left out, because it may hold a file named like a module.
_QUESTION = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.metadata import version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except Exception:
        pass
"""
_PYTHON = re.compile(r"python[\d.]*t?")
_LONGEST_FIRST_LINE = 500
# Programs that run their arguments in the same environment. Others, such as `uv run`, choose
# an environment themselves.
_RUNNERS = frozenset(
    "env nice nohup time timeout stdbuf setsid numactl taskset srun mpirun mpiexec".split()  # noqa: SIM905
)


def find_interpreter(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The Python that runs the command, None if this cannot be told without running it."""
    path = environment.get("PATH")
    for word in command if Path(command[0]).name in _RUNNERS else command[:1]:
        program = shutil.which(word, path=path)
        if program is not None and _is_python(word):
            return program
        if program is not None and Path(word).name not in _RUNNERS:
            return _of_script(Path(program), path)
    return None


def ask_versions(interpreter: str | None, environment: Mapping[str, str]) -> Asked:
    """Ask the interpreter for its packages, if it is known."""
    names = [name for names in _PACKAGES.values() for name in names]
    # With PYTHONINSPECT it would not end.
    clean = {key: value for key, value in environment.items() if key != "PYTHONINSPECT"}
    return Asked([interpreter, "-c", _QUESTION, *names] if interpreter else [], clean)


def version_labels(answer: Iterable[str]) -> dict[str, str]:
    """The labels jax, jaxlib, libtpu and so on, of what is installed."""
    found = dict(line.split(" ", 1) for line in answer if " " in line)
    return {
        label: found[name]
        for label, names in _PACKAGES.items()
        for name in names[::-1]
        if name in found
    }


def _of_script(program: Path, path: str | None) -> str | None:
    """The Python that the first line of a script names."""
    try:
        with program.open("rb") as file:
            first = file.readline(_LONGEST_FIRST_LINE).decode(errors="replace")
    except OSError:
        return None
    if not first.startswith("#!"):
        return None
    for word in first[2:].split():
        if _is_python(word):
            return shutil.which(word, path=path)
    return None


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(Path(word).name) is not None


# What a recorded command is called: the workload, and part of the run's name.

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


# Running a command as `env` would: its streams, signals and exit status are passed through.

_KEYS = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (*_KEYS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
SIGNALLED = 128


class CommandError(MemhouseError):
    """A command that cannot be run; `status` is the exit status that shells give it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command to its end; its exit status, 128+N if signal N killed it.

    The child is in this process group, and has this process's streams. A signal that this
    process receives is sent on, except for Ctrl-C and the like: the terminal sends these to
    the child itself. Raises CommandError.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def send_on(number: int, _: FrameType | None) -> None:
        if number in _KEYS and _is_in_foreground():
            return
        if not children:
            early.append(number)
        with suppress(ProcessLookupError):
            for child in children:
                os.kill(child.pid, number)

    with handling(_FORWARDED, send_on):
        try:
            # Files that the user opened for the command stay open: `<(…)` in a shell is one.
            children.append(subprocess.Popen(command, env=environment, close_fds=False))
        except OSError as error:
            raise _cannot_run(command[0], error) from None
        except ValueError as error:  # A null byte.
            raise CommandError(f"{command[0]!r}: {error}", _NOT_EXECUTABLE) from None
        for number in early:
            send_on(number, None)
        status = children[0].wait()
    return SIGNALLED - status if status < 0 else status


@contextmanager
def handling(
    numbers: Sequence[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Handle these signals in the block; one that is ignored, as by `nohup`, stays ignored."""
    before = {}
    # Only the main thread may set handlers.
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ending_well() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block as an exception, so that it can clean up."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(SIGNALLED + number)

    with handling((signal.SIGTERM, signal.SIGHUP), end):
        yield


def _is_in_foreground() -> bool:
    """Whether the keys of a terminal send their signals to this process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _cannot_run(program: str, error: OSError) -> CommandError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        # A script is there whose interpreter is not.
        if os.path.exists(program):  # noqa: PTH110
            return CommandError(
                f"{program}: the interpreter in its first line is not there", _NOT_EXECUTABLE
            )
        return CommandError(f"{program}: there is no such command", _NOT_FOUND)
    why = error.strerror or str(error)
    return CommandError(f"{program}: it cannot be run: {why}", _NOT_EXECUTABLE)


# The XLA_FLAGS of a recorded command: the user's own, and those that make XLA dump.
#
# JAX, PyTorch/XLA and TensorFlow read XLA_FLAGS, and hand it to libtpu. Of the flags added here
# `--xla_dump_include_timestamp` alone changes the keys of JAX's compilation cache (jax 0.10.2).

_DUMP_TO = re.compile(r"""(?:^|\s)--xla_dump_to=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""")
_NEEDS_QUOTES = re.compile(r"[\s\"'\\]")
# XLA prints to stdout, or writes to a place of the build system.
_NO_FOLDERS = ("-", "sponge", "test_undeclared_outputs_dir")


def own_flags(environment: Mapping[str, str]) -> str:
    """The user's flags. XLA_FLAGS may also name a file that holds them."""
    flags = environment.get("XLA_FLAGS", "").strip()
    if not flags or flags.startswith("-"):
        return flags
    try:
        return Path(flags).read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        # XLA, too, passes over a file that it cannot read.
        return ""


def own_folder(flags: str) -> Path | None:
    """The folder that the user's flags dump to, None if they do not dump.

    Raises UsageError if it is not a folder that can be read later.
    """
    found = _DUMP_TO.findall(flags)
    folder = _unquoted(found[-1]) if found else ""
    if not folder:
        return None
    if folder in _NO_FOLDERS or "://" in folder:
        raise UsageError(
            f"XLA_FLAGS dumps to {folder}, where memhouse cannot read: "
            "name a folder there, or leave --xla_dump_to out"
        )
    return Path(folder).absolute()


def with_dump_flags(
    flags: str, folder: Path | None, *, only: str | None, text: bool, passes: bool = False
) -> str:
    """The flags, and those that make XLA dump to `folder`, or to the user's own if it is None.

    only: a regular expression of module names; text: dump texts too; passes: and those between
    the compiler's passes. The last of equal flags counts for XLA.
    """
    added = ["--xla_dump_hlo_as_proto=true"]
    if text or passes:
        added.append("--xla_dump_hlo_as_text=true")
    if passes:
        added.append("--xla_dump_hlo_pass_re=.*")
    if folder is not None:
        # The processes of a command number their modules alike, so that one would overwrite the
        # other's files. The names in the user's own folder stay as the user expects them.
        added += ["--xla_dump_include_timestamp=true", _flag("xla_dump_to", str(folder))]
    if only is not None:
        added.append(_flag("xla_dump_hlo_module_re", only))
    return " ".join([flags, *added]) if flags else " ".join(added)


def _flag(name: str, value: str) -> str:
    if not _NEEDS_QUOTES.search(value):
        return f"--{name}={value}"
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'--{name}="{escaped}"'


def _unquoted(value: str) -> str:
    if value[:1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value[1:-1] if value[:1] == "'" else value


# The files that a recorded command made XLA dump, under the names that ingest knows.

# XLA puts the time in microseconds before the names, if asked to.
_TIMED = re.compile(r"(?P<time>\d{12,20})\.(?P<name>module_(?P<number>\d+)\..*)")
_STAGE = re.compile(
    r"(?P<stem>module_\d+\..*?)\."
    r"(?P<stage>(?:(?:cpu|gpu|sm_\d+(?:\.\d+)?[a-z]*_gpu|gfx\w+_gpu)_)?after_optimizations"
    r"|before_optimizations)(?P<rest>[-._].*)"
)
_PROGRAM = re.compile(r"\.(txt|hlo\.pb)(\.gz)?")

_State = dict[Path, tuple[int, int]]


def remember(folder: Path) -> _State:
    """The files that are in a folder, with their times and sizes."""
    found: _State = {}
    for file in _files(folder):
        with suppress(OSError):  # It has vanished.
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size)
    return found


def link_new(folder: Path, before: _State, to: Path) -> None:
    """Link what is new in the user's own folder, or has changed there, into a folder."""
    for file, state in remember(folder).items():
        if before.get(file) != state:
            link = to / file.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)


def tell_processes_apart(folder: Path) -> None:
    """Take the times out of the files' names.

    The files of a module have one time. Modules of one number and name are of different
    processes: the first one's files stay, the second one's move to the folder `2`, and so on.
    The order is that of their size, because the order of the times is chance.
    """
    timed: dict[tuple[str, str], list[tuple[str, Path]]] = defaultdict(list)
    untimed: list[Path] = []
    for file in _files(folder, deep=False):
        match = _TIMED.fullmatch(file.name)
        if match is None:
            untimed.append(file)
        else:
            timed[match["time"], match["number"]].append((match["name"], file))
    copies: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (time, number), files in timed.items():
        copies[_stem([name for name, _ in files])].append((_size(files), f"{time}.{number}"))
    for stem, found in copies.items():
        for copy, (_, key) in enumerate(sorted(found), 1):
            place = folder if copy == 1 else folder / str(copy)
            place.mkdir(exist_ok=True)
            time, _, number = key.partition(".")
            for name, file in timed[time, number]:
                file.rename(place / name)
            for file in untimed if copy > 1 else ():
                # XLA writes the flags without a time; they are the same for all processes.
                if file.name == f"{stem}.debug_options":
                    shutil.copy2(file, place)


def cached_modules(folder: Path) -> dict[Path, set[str]]:
    """The stems of the programs that JAX took from its persistent cache, by folder.

    Of such a program XLA dumps the final stage alone, without a target in the file's name and
    without a buffer assignment.
    """
    stages: dict[tuple[Path, str], set[bool]] = defaultdict(set)
    for file in _files(folder):
        match = _STAGE.fullmatch(file.name)
        if match is not None:
            is_final = match["stage"] == "after_optimizations"
            is_program = _PROGRAM.fullmatch(match["rest"]) is not None
            stages[file.parent, match["stem"]].add(is_final and is_program)
    cached: dict[Path, set[str]] = defaultdict(set)
    for (place, stem), found in stages.items():
        if found == {True}:
            cached[place].add(stem)
    return cached


def _files(folder: Path, *, deep: bool = True) -> Iterator[Path]:
    found = folder.rglob("*") if deep else folder.iterdir()
    return (path for path in sorted(found) if path.is_file())


def _stem(names: Sequence[str]) -> str:
    """What the names of a module's files have in common."""
    stages = filter(None, map(_STAGE.fullmatch, names))
    return next((match["stem"] for match in stages), names[0].rpartition(".")[0])


def _size(files: Sequence[tuple[str, Path]]) -> int:
    """The size of a module's files of its program."""
    return sum(file.stat().st_size for name, file in files if _STAGE.fullmatch(name))


# What a recorded command did not compile, and how to make it.

_COMPILE_THEM = "JAX_ENABLE_COMPILATION_CACHE=false makes JAX compile them"
_NAMED = 3


def cached_note(
    cached: Mapping[Path, set[str]],
    environment: Mapping[str, str],
    platforms: Collection[str | None],
) -> list[str]:
    """What of the programs came from JAX's persistent compilation cache, in one line if any.

    platforms: of the programs that were compiled.
    """
    names = _names(cached)
    if names:
        listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        return [
            f"not in the run, because JAX took them from its compilation cache: {listed} "
            f"({len(names)}); {_COMPILE_THEM}"
        ]
    # On CPU each such program leaves a file; that this holds elsewhere was not tried.
    if _uses_cache(environment) and set(platforms) != {"cpu"}:
        return [
            "if JAX took programs from JAX_COMPILATION_CACHE_DIR, they are not in the run; "
            + _COMPILE_THEM
        ]
    return []


def why_nothing(
    status: int,
    cached: Mapping[Path, set[str]],
    environment: Mapping[str, str],
    only: str | None,
    packages: Mapping[str, str] | None,
) -> str:
    """Why nothing was compiled, most probably.

    packages: the versions that the command's Python has, None if it was not found.
    """
    said = "nothing to ingest: "
    if cached:
        number = len(_names(cached))
        programs = "the program" if number == 1 else f"all {number} programs"
        return f"{said}JAX took {programs} from its compilation cache; {_COMPILE_THEM}"
    if only is not None:
        return f"{said}no program was compiled whose name matches --only {only}"
    if status:
        return f"{said}the command ended with status {status} before XLA compiled a program"
    if _uses_cache(environment):
        return (
            f"{said}XLA compiled no program; if they came from JAX_COMPILATION_CACHE_DIR, "
            f"{_COMPILE_THEM}"
        )
    if packages is not None and not packages:
        return (
            f"{said}XLA compiled no program, and the command's Python has no jax, torch_xla "
            "or tensorflow"
        )
    return f"{said}XLA compiled no program, or the command sets XLA_FLAGS itself"


def _uses_cache(environment: Mapping[str, str]) -> bool:
    is_on = environment.get("JAX_ENABLE_COMPILATION_CACHE", "true").lower() not in _OFF
    return is_on and bool(environment.get("JAX_COMPILATION_CACHE_DIR"))


_OFF = ("0", "false", "f", "no", "n", "off")


def _names(cached: Mapping[Path, set[str]]) -> list[str]:
    """The modules' names, in the order of their numbers."""
    stems = sorted({stem for stems in cached.values() for stem in stems})
    return list(dict.fromkeys(stem.partition(".")[2] for stem in stems))


# What would stop the ingest of a recorded command, told before the command runs.


def check_warehouse(db: str, run_id: str | None, *, replaces: bool) -> None:
    """Look whether the warehouse can be opened, and whether it has the run.

    A file that is absent, or that another process uses, says nothing yet. The warehouse is closed
    again. Raises WarehouseError and UsageError.
    """
    if (path := database_path(db)) is None or not path.exists():
        return
    try:
        store = open_store(db, read_only=True)
    except (WarehouseBusyError, UnpreparedError):
        return
    try:
        is_there = run_id is not None and any(
            night["run_id"] == run_id for night in store.nights(run_id)
        )
    finally:
        store.close()
    if is_there and not replaces:
        raise UsageError(
            f"run {run_id!r} is there already: name another run, or replace it with --replace",
            "run",
        )


# Ingests what a recorded command compiled.


def compiled_programs(
    base: Path, cached: Mapping[Path, set[str]], own: Path | None, cleanup: ExitStack
) -> list[DumpedProgram]:
    """The programs that were compiled: not those that came from JAX's cache.

    own: the folder of the user that the links in `base` lead to.
    """
    problems: list[str] = []
    files = open_source(base, is_wanted, cleanup, problems.append, also_in=own)
    return [
        program
        for program in find_dumps(files, lambda file, error: None)
        if program.key.name not in cached.get(base / program.key.workload, ())
    ]


def ingest_compiled(
    recorded: Recorded,
    programs: Sequence[DumpedProgram],
    run: Run,
    store: Store,
    workers: Workers,
    progress: Callable[[int, int], None],
) -> None:
    """Ingest the programs, or else a run without programs, as the night before is not this one.

    A run that the user has not named gets a name of its own.
    """
    number = 1
    while not run.is_named and store.known(run.run_id).run is not None:
        # Another command of this name was started in the same second.
        number += 1
        run = replace(run, run_id=f"{recorded.run_id}_{number}")
    recorded.run_id = run.run_id
    if programs:
        recorded.summary = ingest_programs(store, programs, run, workers, progress)
    else:
        recorded.summary = write_empty(store, run)


# Runs a command so that XLA dumps what it compiles, and ingests that as one run.

Opening = Callable[[Mapping[str, str]], AbstractContextManager["Store"]]


def record_command(
    command: Sequence[str],
    opening: Opening,
    environment: Mapping[str, str],
    *,
    tool_version: str,
    jobs: int,
    run_id: str | None = None,
    claimed_at: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    keep: Path | None = None,
    only: str | None = None,
    text: bool = False,
    passes: bool = False,
    replaces: bool = False,
    user_code: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Recorded:
    """Run the command with XLA's dump flags in its environment, and ingest what it compiled.

    opening: opens the warehouse, given the run's labels; it is called after the command has ended.
    claimed_at: the date that the user claims, else the run stands where it enters. labels: they
    replace those found out here: git's commit, branch and dirty, the versions of jax and so on,
    host, command and suite. keep: an empty folder for the dumps, which otherwise are removed; only:
    a regular expression of module names; text: dump texts too; passes: dump and read those between
    the compiler's passes; replaces: a run `run_id` that holds other dumps is replaced; user_code:
    see `Workers`. Without a run_id the run is named after the command and the time.

    Raises UsageError before the command runs, CommandError if it cannot be run, and
    NotIngestedError.
    """
    flags = own_flags(environment)
    own = own_folder(flags)
    if own is not None and keep is not None:
        raise UsageError(f"XLA_FLAGS already dumps to {own}, where the dumps stay", "keep")
    name = command_name(command)
    with ending_well(), ExitStack() as cleanup, ExitStack() as removal:
        base = _folder(keep, removal)
        folder = base / name
        folder.mkdir()
        before = {} if own is None else remember(own)
        script = script_of(command)
        at = script.parent if script is not None and script.is_file() else Path.cwd()
        start = clock.now()
        git = cleanup.enter_context(ask_git(at, environment))
        interpreter = find_interpreter(command, environment)
        versions = cleanup.enter_context(ask_versions(interpreter, environment))
        added = with_dump_flags(flags, None if own else folder, only=only, text=text, passes=passes)
        status = run_child(command, {**environment, "XLA_FLAGS": added})
        packages = version_labels(versions.lines())
        found = {
            **git_labels(git.lines()),
            **packages,
            "host": socket.gethostname(),
            "command": shlex.join(command),
            "suite": name,
        }
        recorded = Recorded(
            status, run_id or default_run(name, start), start, {**found, **(labels or {})}
        )
        if own is not None:
            link_new(own, before, folder)
        tell_processes_apart(folder)
        cached = cached_modules(folder)
        asked = packages if interpreter else None
        if own is None:
            forget_folder(base)
        is_empty = not any(folder.iterdir())
        programs = [] if is_empty else compiled_programs(base, cached, own, cleanup)
        if programs:
            recorded.notes += cached_note(
                cached, environment, {program.key.platform for program in programs}
            )
        else:
            recorded.notes.append(why_nothing(status, cached, environment, only, asked))
        source = str(own or keep or shlex.join(command))
        run = Run(
            recorded.run_id,
            source,
            tool_version,
            claimed_at,
            recorded.labels,
            is_named=run_id is not None,
            replaces=replaces,
        )
        try:
            with opening(recorded.labels) as store, Workers(jobs, user_code) as workers:
                ingest_compiled(recorded, programs, run, store, workers, progress)
        except Exception as error:
            removal.pop_all()
            raise NotIngestedError(recorded, base) from error
    return recorded


def _folder(keep: Path | None, removal: ExitStack) -> Path:
    """The folder to dump to: the one to keep, else one that `removal` removes."""
    if keep is None:
        base = Path(tempfile.mkdtemp(prefix="memhouse-"))
        # What the command left running may still write there.
        removal.callback(shutil.rmtree, base, ignore_errors=True)
        return base
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise UsageError(f"{keep} is not empty: name a new folder", "keep")
    except OSError as error:
        raise FileError(
            f"cannot make {keep}: {with_remedy(error.strerror or str(error))}"
        ) from None
    return keep.absolute()
