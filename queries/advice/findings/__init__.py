"""The kinds of finding: a file each, and this folder lists them.

A finding's file has a function of its name, from a program to findings, and says when it is asked:
`PLACE`, in which order equal savings are told; `NEEDS`, what must be known of the program, `OWNERS`
of its values and `INSTRUCTIONS`, what they do; `COMPUTES_AGAIN`, if a wanted saving replaces it.
"""

from collections.abc import Callable, Iterator, Set
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ..asked_program import Program
from ..finding import Finding

OWNERS, INSTRUCTIONS = "owners", "instructions"


def findings_of(program: Program, *, with_computed_again: bool) -> Iterator[Finding]:
    """What the files find in a program, each if all is known that it needs.

    Without `with_computed_again` those are left out that compute again what is saved.
    """
    known: Set[str] = {
        *([OWNERS] if program.layout.is_followed else []),
        *([INSTRUCTIONS] if program.hlo is not None else []),
    }
    for name, file in _files():
        if known >= file.NEEDS and (with_computed_again or not file.COMPUTES_AGAIN):
            find: Callable[[Program], list[Finding]] = getattr(file, name)
            yield from find(program)


@cache
def _files() -> list[tuple[str, Any]]:
    files = [
        (file.name, import_module(f"{__name__}.{file.name}")) for file in iter_modules(__path__)
    ]
    return sorted(files, key=lambda file: (file[1].PLACE, file[0]))
