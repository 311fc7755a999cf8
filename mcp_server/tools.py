"""The tools, in the order in which an agent sees them."""

from .ask_history import check, diff, since, trends
from .ask_modules import advise, buffers, modules, oom, owners, peaks, runs
from .ask_sql import sql
from .ask_views import views
from .tool import opening, tool_of

TOOLS = {
    tool.name: tool
    for tool in (
        tool_of(opening(runs), "Runs"),
        tool_of(opening(trends), "What grew, when and why"),
        tool_of(opening(check), "Within limits?"),
        tool_of(opening(diff), "What differs between two runs"),
        tool_of(opening(since), "Since when"),
        tool_of(opening(modules), "Modules"),
        tool_of(opening(peaks), "Peaks and headroom"),
        tool_of(opening(owners), "Who owns the peak"),
        tool_of(opening(buffers), "Buffers at the peak"),
        tool_of(opening(advise), "What to change first"),
        tool_of(opening(oom), "Why memory ran out"),
        tool_of(opening(views), "Views, tables and columns"),
        tool_of(sql, "SQL"),
    )
}
