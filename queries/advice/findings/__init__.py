"""The kinds of finding; the files in this folder list them, a subject a file.

A finding is a function from a program to findings, `listed` with when it is asked.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from ..asked_program import Program
from ..finding import Finding

# What may have to be known of a program: the owners of its values, and what instructions do.
OWNERS, INSTRUCTIONS = "owners", "instructions"

_Find = Callable[[Program], list[Finding]]


class _Listed(NamedTuple):
    place: int
    needs: frozenset[str]
    computes_again: bool
    find: _Find


_LISTED: list[_Listed] = []


def listed(place: int, *needs: str, computes_again: bool = False) -> Callable[[_Find], _Find]:
    """List a finding.

    place: in which order equal savings are told; needs: what must be known of the program;
    computes_again: it computes again what is saved, and a wanted saving replaces it.
    """

    def add(find: _Find) -> _Find:
        _LISTED.append(_Listed(place, frozenset(needs), computes_again, find))
        return find

    return add


def findings_of(program: Program, *, with_computed_again: bool) -> Iterator[Finding]:
    """What the listed functions find in a program, each if all is known that it needs.

    Without `with_computed_again` those are left out that compute again what is saved.
    """
    for file in iter_modules(__path__):
        import_module(f"{__name__}.{file.name}")
    known = {
        *([OWNERS] if program.layout.is_followed else []),
        *([INSTRUCTIONS] if program.hlo is not None else []),
    }
    for each in sorted(_LISTED, key=lambda each: each.place):
        if known >= each.needs and (with_computed_again or not each.computes_again):
            yield from each.find(program)
