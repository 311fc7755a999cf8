"""What the documentation tells of agents is so: tools, configuration, answers, SQL."""

import json
import re
from pathlib import Path

from ..support.command import MEMHOUSE

DOCS = Path(__file__).parents[2] / "docs"
SKILL = DOCS / "agents/SKILL.md"
CODE = re.compile(r"`([^`\n]+)`")


def fenced(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_lists_every_tool_and_shows_a_real_answer(asked):
    table = (DOCS / "mcp.md").read_text().split("| tool | question |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines() for name in CODE.findall(row.split(" | ")[0])]
    assert sorted(named) == sorted(asked.tools())
    configured, answer = fenced(DOCS / "mcp.md", "json")
    server = json.loads(configured)["mcpServers"]["memhouse"]
    assert (server["command"], server["args"][:2]) == (MEMHOUSE.name, ["mcp", "--db"])
    assert asked.ask("since", module="decode-v5e").text == answer.rstrip("\n")


def test_the_guide_is_a_skill_that_names_tools_and_arguments_that_are_there(asked):
    opening, front, text = SKILL.read_text().split("---\n", 2)
    found = dict(line.split(": ", 1) for line in front.splitlines())
    assert (opening, [*found]) == ("", ["name", "description"])
    # What agents take as a skill.
    assert re.fullmatch(r"[a-z-]{1,64}", found["name"])
    assert 100 < len(found["description"]) < 1024
    words = {"memhouse mcp", "steps", "said", "scope", "source", "role", "by=source", "by=pass"}
    tools = asked.tools()
    for name, tool in tools.items():
        words |= {name, *tool.input_schema["properties"]}
    section = text.split("# Investigate")[1].split("## Questions without a tool")[0]
    named = set(CODE.findall(section))
    assert named <= words
    assert len(named & tools.keys()) >= 11


def test_the_guide_s_queries_are_answered(known):
    queries = fenced(SKILL, "sql")
    assert len(queries) >= 3
    for query in queries:
        rows = known.sql(query).arrow().to_pylist()
        assert len(rows) >= 5, query
        assert None not in rows[0].values(), query
