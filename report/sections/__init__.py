"""The sections below the owners in a module's report: a file each, and this folder lists them."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from ...queries.modules import FoundModule
from ...schema.store import Store
from ..module_spaces import Space
from ..page import Section


def sections_of(store: Store, found: FoundModule, space: Space) -> Iterator[Section]:
    """What the files say of a memory space, in the order of their `PLACE`.

    Each file has a function of these arguments, `sections`, which yields its sections.
    """
    files = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)]
    for file in sorted(files, key=lambda file: (file.PLACE, file.__name__)):
        yield from file.sections(store, found, space)
