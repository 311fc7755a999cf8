"""The versions of the packages that a recorded command compiles with.

They are those of the Python that runs the command, which may be another environment's. This
Python is asked for the metadata of its packages; none of them is imported.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .asked import Asked

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
