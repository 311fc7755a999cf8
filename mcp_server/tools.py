"""The tools, in the order of the commands: the questions that are tools, and those made by hand."""

from ..queries.names import GROUPS, QUESTIONS
from ..queries.questions import declared
from . import answers
from .ask_sql import sql
from .ask_views import views
from .tool import Tool, opening, tool_of, tool_of_question

_BY_HAND = {
    "oom": tool_of(opening(answers.oom), "Why memory ran out"),
    "sql": tool_of(sql, "SQL"),
    "views": tool_of(opening(views), "Views, tables and columns"),
}


def _tool(name: str) -> Tool | None:
    if name not in QUESTIONS:
        return _BY_HAND.get(name)
    question = declared(name)
    if question.tool is None:
        return None
    return tool_of_question(question, getattr(answers, name, None), question.tool)


TOOLS = {
    name: tool for names in GROUPS.values() for name in names if (tool := _tool(name)) is not None
}
