"""The `memhouse` command, a skin of the library: options, a call, a renderer, a status."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
_WRONG_USAGE = 2
_BISECTION_ABORTS = 128


def main() -> None:
    """The entry point: run the command and end the process."""
    _open_standard_streams()
    # Nearly all objects belong to the libraries and stay until the end. Looking for garbage
    # among them at every import, and freeing them one by one at exit, only takes time.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    os._exit(run())


def run() -> int:
    """Run the command of `sys.argv`; its status. An expected failure is one line and a status."""
    try:
        status = _run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output, `head` for one, has had enough: that is not a failure.
        return 0
    except Exception as error:
        from .errors import told

        failed = told(error)
        if failed is None:
            raise
        return failed
    return status


def _run() -> int:
    asked, _, shell = os.environ.get("_MEMHOUSE_COMPLETE", "").partition("_")
    if asked == "complete" and shell in ("bash", "zsh", "fish"):
        from .shell_completion import complete

        return complete(shell)
    if len(sys.argv) == 1 and not asked:
        from .commands.doctor import show_first_steps

        show_first_steps()
        # A script that lost the command's name must not pass.
        return _WRONG_USAGE
    from ..schema.errors import UsageError
    from .app import app_for

    try:
        app = app_for(sys.argv[1:])
    except UsageError as error:
        from .render.text import print_error

        print_error(str(error))
        return _BISECTION_ABORTS if _bisects(sys.argv) else _WRONG_USAGE
    try:
        app()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        return _BISECTION_ABORTS if status == _WRONG_USAGE and _bisects(sys.argv) else status
    return 0


def _bisects(arguments: list[str]) -> bool:
    """Whether `git bisect run` asks: to git, the status of wrong usage is a bad commit."""
    return any(argument.partition("=")[0] == "--bisect" for argument in arguments)


def _open_standard_streams() -> None:
    """Where a standard stream is closed, open /dev/null in its place.

    Its number would go to the next file opened, and a message meant for stderr to the warehouse.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)


# pyarrow imports pandas and numpy wherever they are installed, only to recognise their objects,
# and each takes longer than a short command. The library does not refuse them: a notebook needs
# both.

# Commands of which no part computes in numpy, but for advice.
_WITHOUT_NUMPY = ("check", "modules", "peaks", "runs", "sql")


class _Unneeded:
    """A finder and loader of packages that cannot be imported, which those who ask accept.

    It does not say that they are absent: Bokeh takes no refusal where it only looks for pandas.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._packages:
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        raise ModuleNotFoundError(
            f"this memhouse command works without {spec.name}", name=spec.name
        )

    def exec_module(self, module: ModuleType) -> None:
        pass


def _keep_out_unneeded(arguments: Sequence[str]) -> None:
    """Refuse packages to this process and to those it forks, but not to programs it starts."""
    packages = ["pandas"]
    if arguments and arguments[0] in _WITHOUT_NUMPY and "--advise" not in arguments:
        packages.append("numpy")
    sys.meta_path.insert(0, _Unneeded(packages))
