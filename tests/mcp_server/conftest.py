"""An agent of the ten nights, in this process, and what the library says of them."""

import pytest

import memhouse

from ..support.agent import agent_here


@pytest.fixture(scope="session")
def asked(history):
    with agent_here(history) as found:
        yield found


@pytest.fixture(scope="session")
def known(history):
    with memhouse.open(history, read_only=True) as warehouse:
        yield warehouse
