"""What of a failure is expected: what the user is told of it, and the exit status."""

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
# What DuckDB makes of Ctrl-C while it works, and while it asks Arrow for rows.
_INTERRUPT = re.compile(r"Query interrupted|: KeyboardInterrupt:")


def usage_errors(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """The command, whose wrong arguments are told as wrong usage."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except UsageError as error:
            hint = _option(command, error.argument)
            raise typer.BadParameter(str(error), param_hint=hint) from None
        except Exception as error:
            status = told(error)
            if status is None:
                raise
            raise typer.Exit(status) from None

    return run


def _option(command: Callable[..., object], argument: str | None) -> str | None:
    """The option of a command that gives this argument of the library, if there is one."""
    parameter = inspect.signature(command).parameters.get(argument or "")
    info = parameter.annotation.__metadata__[0] if parameter is not None else None
    if not isinstance(info, OptionInfo):
        return None
    return spellings(info, str(argument))[0]


def told(error: Exception) -> int | None:
    """Tell the user of a failure that is not our bug; the exit status, None if it is."""
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
                "a process that read dumps was killed, for lack of memory perhaps: "
                "give the same command again, with fewer --jobs"
            )
    return None


# Exit statuses for `git bisect run`, which takes most failures for a bad commit.

# git skips the commit.
CANNOT_BE_JUDGED = 125
# git aborts the bisection, as for every status from 128 on.
ABORTS = 128


@contextmanager
def bisecting(module: str | None) -> Iterator[None]:
    """Whatever ends the judging of `module` is not taken for a bad commit; None: no bisection."""
    if module is None:
        yield
        return
    try:
        yield
    except typer.Exit:
        raise typer.Exit(ABORTS) from None
    except UsageError as error:
        # A commit that made no dump has no run.
        if error.argument == "run":
            print_note(f"{module} cannot be judged: {error}")
            raise typer.Exit(CANNOT_BE_JUDGED) from None
        print_error(str(error))
        raise typer.Exit(ABORTS) from None
    except Exception as error:
        status = told(error)
        if status is None:
            traceback.print_exc()
        raise typer.Exit(max(status or 0, ABORTS)) from None
