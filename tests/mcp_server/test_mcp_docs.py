"""What the documentation tells of agents is so: tools, configuration, answers, SQL."""

import json
import re
from pathlib import Path

import pytest

from memhouse.mcp_server.tools import TOOLS

from ..support.agent import agent
from ..support.command import MEMHOUSE

DOCS = Path(__file__).parents[2] / "docs"
SKILL = DOCS / "agents/SKILL.md"
CODE = re.compile(r"`([^`\n]+)`")


def fenced(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def asked(history, tmp_path_factory):
    with agent(history, tmp_path_factory.mktemp("agent") / "stderr") as found:
        yield found


def test_the_page_lists_every_tool():
    table = (DOCS / "mcp.md").read_text().split("| tool | question |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines() for name in CODE.findall(row.split(" | ")[0])]
    assert sorted(named) == sorted(TOOLS)


def test_the_configuration_starts_the_server(history, tmp_path):
    configured, answer = fenced(DOCS / "mcp.md", "json")
    server = json.loads(configured)["mcpServers"]["memhouse"]
    assert server["command"] == MEMHOUSE.name
    assert server["args"][:2] == ["mcp", "--db"]
    with agent(history, tmp_path / "stderr") as asked:
        assert asked.ask("since", module="decode-v5e").text == answer.rstrip("\n")


def test_the_guide_has_the_front_matter_of_a_skill():
    opening, front, text = SKILL.read_text().split("---\n", 2)
    found = dict(line.split(": ", 1) for line in front.splitlines())
    assert (opening, [*found]) == ("", ["name", "description"])
    assert re.fullmatch(r"[a-z-]{1,64}", found["name"])
    assert 100 < len(found["description"]) < 1024
    assert len(text.splitlines()) < 120


def test_the_guide_names_tools_and_arguments_that_are_there():
    words = {"memhouse mcp", "steps", "said", "scope", "source", "role", "by=source", "by=pass"}
    for tool in TOOLS.values():
        words |= {tool.name, *tool.schema["properties"]}
    section = SKILL.read_text().split("# Investigate")[1].split("## Questions without a tool")[0]
    named = set(CODE.findall(section))
    assert named <= words
    assert len(named & TOOLS.keys()) >= 11


@pytest.mark.parametrize("query", fenced(SKILL, "sql"))
def test_the_guide_s_queries_are_answered(asked, query):
    rows = asked.ask("sql", query=query).rows("result")
    assert len(rows) >= 5
    assert all(value is not None for value in rows[0].values())
