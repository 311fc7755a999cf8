"""The examples beside XLA's rules."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

from memhouse import xla


def test_they_hold():
    tried = 0
    for module in iter_modules(xla.__path__):
        failed, examples = doctest.testmod(import_module(f"memhouse.xla.{module.name}"))
        assert failed == 0, module.name
        tried += examples
    assert tried
