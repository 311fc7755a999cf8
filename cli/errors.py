"""Messages and exit statuses of expected failures."""

import functools
import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import duckdb
import typer
from typer.models import OptionInfo

from ..schema.errors import MemhouseError, UsageError, duckdb_says, with_remedy
from .parameters import spellings
from .render.text import print_error, print_note

_P = ParamSpec("_P")
_R = TypeVar("_R")
FAILED = 1
_INTERRUPTED = 130
# Exit statuses for `git bisect run`, which takes most others for a bad commit: 125 skips the
# commit, 128 and above abort the bisection.
CANNOT_BE_JUDGED = 125
ABORTS = 128
# DuckDB's message after Ctrl-C, during a query or while it fetches rows from Arrow.
_INTERRUPT = re.compile(r"Query interrupted|: KeyboardInterrupt:")


def usage_errors(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a command: turn its errors into usage errors of Typer, or a message and a status."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except UsageError as error:
            hint = _option(command, error.argument)
            raise typer.BadParameter(str(error), param_hint=hint) from None
        except Exception as error:
            status = report_expected_error(error)
            if status is None:
                raise
            raise typer.Exit(status) from None

    return run


def _option(command: Callable[..., object], argument: str | None) -> str | None:
    """The option for an argument of the library, None if the command has none."""
    parameter = inspect.signature(command).parameters.get(argument or "")
    info = parameter.annotation.__metadata__[0] if parameter is not None else None
    if not isinstance(info, OptionInfo):
        return None
    return spellings(info, str(argument))[0]


def report_expected_error(error: Exception) -> int | None:
    """Print an expected failure to stderr; return its exit status, or None for a bug."""
    if isinstance(error, BrokenPipeError):
        return None
    if _INTERRUPT.search(str(error)):
        return _INTERRUPTED
    message = _message(error)
    if message is None:
        return None
    print_error(message)
    return FAILED


def _message(error: Exception) -> str | None:
    if isinstance(error, MemhouseError):
        return str(error)
    match error:
        case duckdb.Error():
            return with_remedy(duckdb_says(error))
        case OSError(strerror=str(reason)):
            return with_remedy(f"{error.filename or 'cannot write the output'}: {reason}")
        case BrokenProcessPool():
            return (
                "a process that reads dumps was killed, possibly for lack of memory: "
                "try again with fewer --jobs"
            )
    return None


@contextmanager
def bisecting(module: str | None) -> Iterator[None]:
    """Map failures to statuses for `git bisect run`, unless `module`, which it checks, is None."""
    if module is None:
        yield
        return
    try:
        yield
    except typer.Exit:
        raise typer.Exit(ABORTS) from None
    except UsageError as error:
        # A commit whose build wrote no dump has no run.
        if error.argument == "run":
            print_note(f"{module} cannot be checked: {error}")
            raise typer.Exit(CANNOT_BE_JUDGED) from None
        print_error(str(error))
        raise typer.Exit(ABORTS) from None
    except Exception as error:
        status = report_expected_error(error)
        if status is None:
            traceback.print_exc()
        raise typer.Exit(max(status or 0, ABORTS)) from None
