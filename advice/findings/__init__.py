"""The kinds of finding; the files in this folder list them, a subject a file.

A finding is a function from a program to findings, `listed` with when it is asked.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from ..asked_program import Program
from ..finding import Finding

_Find = Callable[[Program], list[Finding]]


class _Listed(NamedTuple):
    place: int
    computes_again: bool
    find: _Find


_LISTED: list[_Listed] = []


def listed(place: int, *, computes_again: bool = False) -> Callable[[_Find], _Find]:
    """List a finding.

    place: in which order equal savings are told; computes_again: it computes again what is saved,
    and a wanted saving replaces it.
    """

    def add(find: _Find) -> _Find:
        _LISTED.append(_Listed(place, computes_again, find))
        return find

    return add


def findings_of(program: Program, *, with_computed_again: bool) -> Iterator[Finding]:
    """What the listed functions find in a program; nothing without the owners of its values, or if
    it is not known what instructions do.

    Without `with_computed_again` those are left out that compute again what is saved.
    """
    if not program.layout.is_followed or program.hlo is None:
        return
    for file in iter_modules(__path__):
        import_module(f"{__name__}.{file.name}")
    for each in sorted(_LISTED, key=lambda each: each.place):
        if with_computed_again or not each.computes_again:
            yield from each.find(program)
