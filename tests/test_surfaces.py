"""A question is asked in the same way from Python and from the command line."""

import inspect
from typing import get_args

from memhouse import Warehouse
from memhouse.cli.app import COMMANDS, PANELS, build_app
from memhouse.cli.parameters import Owner
from memhouse.mcp_server import parameters
from memhouse.mcp_server.tools import TOOLS
from memhouse.queries.owners import OWNERS

METHODS = {name for name in COMMANDS if callable(getattr(Warehouse, name, None))}
# They take several things apart: paths, files, KEY=VALUE, a query and its way out.
OTHERWISE = {"export", "ingest", "label", "merge", "oom", "publish", "record", "report", "sql"}
# Commands fold for people; --bisect is the module of `check`.
PYTHON_ONLY = {("peaks", "fold"), ("trends", "fold"), ("check", "module")}
# A screen shows fewer rows than a table has.
SCREEN = {"limit": 20}
AGENTS = {"limit": 12, "memory_space": 0}


def commands():
    """The functions of all commands."""
    return {command.name: command.callback for command in build_app().registered_commands}


def test_a_command_has_the_parameters_and_defaults_of_the_method():
    asked = METHODS - OTHERWISE - {"compact"}
    assert len(asked) == 20
    for name in sorted(asked):
        command = inspect.signature(commands()[name]).parameters
        method = inspect.signature(getattr(Warehouse, name)).parameters
        for parameter in [*method.values()][1:]:
            if (name, parameter.name) in PYTHON_ONLY:
                continue
            default = command[parameter.name].default
            expected = parameter.default
            if (name, parameter.name) != ("log", "limit"):
                expected = SCREEN.get(parameter.name, expected)
            assert default == expected or (default is None and expected == ()), (name, parameter)


def test_the_list_of_commands_has_the_first_line_of_each_help():
    summaries = {name: line for panel in PANELS.values() for name, line in panel.items()}
    first = {name: inspect.getdoc(command).split("\n")[0] for name, command in commands().items()}
    assert summaries == first


def test_the_kinds_of_owner_are_those_of_the_query():
    assert get_args(Owner) == get_args(parameters._Owner) == tuple(OWNERS)


def test_a_tool_has_the_parameters_and_defaults_of_the_method():
    tools = {tool.__name__: inspect.signature(tool).parameters for tool in TOOLS}
    asked = tools.keys() & METHODS - OTHERWISE
    assert len(asked) > 10
    for name in sorted(asked):
        method = inspect.signature(getattr(Warehouse, name)).parameters
        for parameter in [*tools[name].values()][1:]:
            if parameter.name in AGENTS:
                expected = AGENTS[parameter.name]
            else:
                expected = method[parameter.name].default
            assert parameter.default in (expected, expected or None), (name, parameter)
