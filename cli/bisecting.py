"""Exit statuses for `git bisect run`, which takes most failures for a bad commit."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..schema.errors import UsageError
from .errors import told
from .render.text import print_error, print_note

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
